"""Every so-many-th step stands for those left out."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.hypergradient import NaturalStep, natural
from hyperirl.lstd import input_normalizer, random_features, temporal_differences
from hyperirl.policies import softmax_table
from hyperirl.problem import Problem
from hyperirl.rewards import TableReward
from hyperirl.spaces import Discrete
from hyperirl.trajectories import Trajectories

EPISODES, STEPS = 6, 8
PROBLEM = Problem(jnp.float64(0.3), jnp.float64(1.0))


@pytest.fixture(scope="module")
def steady() -> Trajectories:
    """Each episode stays in one state and repeats one action, so any step is like all.

    Without a discount: half of the steps are worth exactly half.
    """
    states = jnp.array([0, 1, 1, 0, 1, 0])
    actions = jnp.array([0, 1, 0, 1, 1, 0], jnp.int32)
    one_hot = jax.nn.one_hot(states, 2, dtype=jnp.float64)
    return Trajectories(
        observations=jnp.repeat(one_hot[:, None, :], STEPS + 1, axis=1),
        actions=jnp.repeat(actions[:, None], STEPS, axis=1),
        mask=jnp.ones((EPISODES, STEPS), bool),
        terminated=jnp.ones(EPISODES, bool),
    )


@pytest.fixture(scope="module")
def features(steady):
    normalizer = input_normalizer(steady)
    return random_features(
        normalizer,
        Discrete(2),
        key=jr.key(0),
        num_units=0,
        polynomial=1,
        dtype=jnp.float64,
    )


@pytest.mark.parametrize("every", [2, 4])
def test_temporal_differences_of_thinned_steps_are_those_of_all(
    steady, features, every
):
    steady = Trajectories(  # Without an end, whose step is not like the others.
        steady.observations, steady.actions, steady.mask, jnp.zeros(EPISODES, bool)
    )
    policy = softmax_table(jnp.array([[0.5, -0.5], [0.2, 0.0]]))
    whole, thin = (
        temporal_differences(features, policy, steady, PROBLEM, n) for n in (1, every)
    )
    np.testing.assert_allclose(thin, whole, atol=1e-12)


def test_the_metric_of_thinned_steps_is_that_of_all(steady, features, monkeypatch):
    """Its three parts have weights of their own, which must agree."""
    policy = softmax_table(jnp.array([[0.5, -0.5], [0.2, 0.0]]))
    reward = TableReward(jnp.zeros((2, 2)))
    step = NaturalStep(features, ridge=1e-6)
    problem = Problem(PROBLEM.temperature, jnp.float64(0.9))
    # Almost no discount, and the end out of sight of both.
    goes_on = Trajectories(
        steady.observations, steady.actions, steady.mask, jnp.zeros(EPISODES, bool)
    )
    roots = {}
    for every in (1, 2):
        monkeypatch.setattr(natural, "_MAX_SAMPLES", EPISODES * STEPS // every)
        roots[every] = step.root(policy, reward, goes_on, goes_on, problem)
    # Even steps have a little more weight than odd ones: 1 / 0.95 of their mean.
    share = (
        2 * sum(0.9**t for t in range(0, STEPS, 2)) / sum(0.9**t for t in range(STEPS))
    )
    np.testing.assert_allclose(
        roots[2].T @ roots[2], share * (roots[1].T @ roots[1]), rtol=1e-6
    )
