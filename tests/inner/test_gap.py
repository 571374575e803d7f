"""The optimality gap of a report, by the best way there is."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import LQR, OtherStarts
from hyperirl.inner import true_reward
from hyperirl.inner.acting import act, start
from hyperirl.inner.diagnostics import inner_gradient, newton_decrement
from hyperirl.inner.gap import optimality_gap
from hyperirl.policies import linear_gaussian, mlp_policy
from hyperirl.problem import problem
from hyperirl.rewards import mlp_reward
from hyperirl.spaces import Box

LQR_TASK = LQR(horizon=60)  # `0.9 ** 60` of the weight is cut off, which is nothing.
PROBLEM = problem(temperature=0.3, discount=0.9)
GAIN = jnp.full((2, 4), 0.5, jnp.float32)
POLICY = linear_gaussian(GAIN, 0.6 * jnp.eye(2, dtype=jnp.float32))
SQUASHED = mlp_policy(4, Box(2, -1.0, 1.0), key=jr.key(0), hidden=(), squash=True)


@pytest.fixture(scope="module")
def batch():
    """From environments whose first, cut episodes are over."""

    @eqx.filter_jit
    def collect(key):
        start_key, warm_key, key = jr.split(key, 3)
        actors = start(LQR_TASK, 64, key=start_key)
        actors, _ = act(LQR_TASK, POLICY, actors, 60, key=warm_key)
        return act(LQR_TASK, POLICY, actors, 600, key=key)[1]

    return collect(jr.key(0))


def gap(environment, reward, batch, policy=POLICY):
    """And that of Newton's decrement, for advantages that are all 1."""

    @eqx.filter_jit
    def both(environment, reward, policy, batch):
        ones = jnp.ones_like(batch.times, jnp.float32)
        gradient = inner_gradient(policy, batch, ones, PROBLEM)
        args = policy, batch, gradient, PROBLEM
        return optimality_gap(environment, reward, *args), newton_decrement(*args)

    return both(environment, reward, policy, batch)


def test_the_gap_of_lqr_is_the_exact_one_but_for_the_states_that_were_sampled(batch):
    """Fails without the discount or the temperature, or with the policies exchanged."""
    reward = true_reward(LQR_TASK)
    found, error = map(float, gap(LQR_TASK, reward, batch)[0])
    expected = float(exact.lqr.optimality_gap(LQR_TASK, POLICY, reward, PROBLEM))
    assert abs(found - expected) < 4 * error < 0.3 * expected


def other_starts():
    return OtherStarts(
        task=LQR_TASK,
        observations=jnp.eye(4, dtype=jnp.float32),
        count=jnp.int32(4),
        chance=jnp.float32(0.5),
        horizon=60,
    )


@pytest.mark.parametrize(
    "environment, reward",
    [
        (other_starts(), true_reward(LQR_TASK)),
        (LQR(max_action=5.0, horizon=60), true_reward(LQR_TASK)),
        (LQR_TASK, mlp_reward(4, LQR_TASK.action_space, key=jr.key(1))),
    ],
    ids=["other starts", "clipped", "not quadratic"],
)
def test_without_a_closed_form_the_gap_is_newtons_decrement(batch, environment, reward):
    found, newton = gap(environment, reward, batch)
    np.testing.assert_array_equal(found, newton)


def test_the_gap_of_a_policy_that_cannot_hold_the_solution_is_unknown(batch):
    """A squashed policy is infinitely far from a Gaussian."""
    inside = eqx.tree_at(lambda b: b.actions, batch, jnp.clip(batch.actions, -0.9, 0.9))
    found, _ = gap(LQR_TASK, true_reward(LQR_TASK), inside, SQUASHED)
    assert np.all(np.isnan(found))
