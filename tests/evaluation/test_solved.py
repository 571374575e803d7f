"""Policies that are computed, not trained."""

import jax.random as jr
import numpy as np
import pytest

from hyperirl import evaluation, exact, tasks
from hyperirl.inner import true_reward
from hyperirl.problem import problem
from hyperirl.rewards import mlp_reward


def test_lqr_with_a_quadratic_reward_is_solved_by_the_soft_riccati_equation():
    lqr = tasks.make("lqr").environment
    found = evaluation.solved_policy(lqr, true_reward(lqr), problem())
    solution = exact.lqr.soft_riccati(lqr, true_reward(lqr), problem())
    gain, scale = exact.lqr.gain_and_scale(found)
    np.testing.assert_allclose(gain, solution.gain, rtol=1e-5)
    np.testing.assert_allclose(scale @ scale.T, solution.covariance, rtol=1e-4)


def test_another_temperature_is_another_policy():
    lqr = tasks.make("lqr").environment
    scales = [
        exact.lqr.gain_and_scale(
            evaluation.solved_policy(lqr, true_reward(lqr), problem(temperature))
        )[1]
        for temperature in (0.1, 0.4)
    ]
    np.testing.assert_allclose(2 * scales[0], scales[1], rtol=1e-5)


@pytest.mark.parametrize("name", ["cartpole", "pendulum", "lqr-clipped"])
def test_elsewhere_only_training_helps(name):
    """`lqr-clipped` has the same reward as `lqr`, but no closed form."""
    environment = tasks.make(name).environment
    assert evaluation.solved_policy(
        environment, true_reward(environment), problem()
    ) is (None)


def test_rewards_that_are_not_quadratic_have_no_closed_form():
    lqr = tasks.make("lqr").environment
    reward = mlp_reward(lqr.observation_size, lqr.action_space, key=jr.key(0))
    assert evaluation.solved_policy(lqr, reward, problem()) is None
