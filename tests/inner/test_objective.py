"""What the solvers descend is `L_inner` and nothing else, against exact answers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from inner_problems import MDP, PROBLEM, REWARD, SOMEHOW, logits

from hyperirl import exact
from hyperirl.inner import PPO, LeaveOneOut, Reinforce, RunningMean
from hyperirl.inner.acting import act, distributions, start
from hyperirl.inner.descent import moments
from hyperirl.inner.diagnostics import (
    GradientEstimate,
    conjugate_gradients,
    inner_gradient,
)
from hyperirl.inner.ppo import Samples
from hyperirl.inner.reinforce import ReinforceState, as_batch
from hyperirl.policies import softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import TableReward
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories

STATES, ACTIONS = MDP.rewards.shape
ALPHA, DISCOUNT = float(PROBLEM.temperature), float(PROBLEM.discount)


@jax.jit
def exact_gradient(table):
    loss = lambda x: exact.tabular.inner_loss(MDP, x, MDP.rewards, PROBLEM)
    return jax.grad(loss)(table.astype(jnp.float64))


@jax.jit
def soft_advantages(table):
    """`Q - alpha log pi - V` of a policy, from its exact values."""
    v = exact.tabular.policy_value(MDP, table, MDP.rewards, PROBLEM)
    moves = MDP.transitions.astype(jnp.float64) @ v
    q = MDP.rewards.astype(jnp.float64) + DISCOUNT * moves
    log_pi = jax.nn.log_softmax(table.astype(jnp.float64))
    return q - ALPHA * log_pi - v[:, None]


def every_step(policy, weights):
    """A sample for each state and action, its advantage weighted."""
    rows, columns = np.divmod(np.arange(STATES * ACTIONS), ACTIONS)
    observations = jax.vmap(MDP.observe)(jnp.asarray(rows, jnp.int32))
    advantages = (weights * soft_advantages(logits(policy))).reshape(-1)
    zeros = jnp.zeros(rows.size, jnp.float32)
    return Samples(
        observations,
        jnp.asarray(columns, jnp.int32),
        distributions(policy, observations),
        advantages.astype(jnp.float32),
        zeros,
    )


def test_the_surrogate_has_the_gradient_of_the_inner_loss_at_the_old_policy():
    """Every state and action counts with its exact discounted visits."""
    visits = exact.tabular.occupancy(MDP, logits(SOMEHOW), PROBLEM.discount)
    samples = every_step(SOMEHOW, visits * visits.size)  # The loss is a mean.
    loss = lambda x: PPO().policy_loss(softmax_table(x), samples, PROBLEM)[0]
    found = jax.jit(jax.grad(loss))(logits(SOMEHOW))
    expected = exact_gradient(logits(SOMEHOW))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_unclipped_surrogate_is_the_exact_change_for_fixed_states(getkey):
    """`sum_a new (alpha log new - Q)` changes by `-E[ratio A] + alpha KL(new, old)`."""
    old = SOMEHOW
    new = softmax_table(
        logits(old) + jr.normal(getkey(), (STATES, ACTIONS)).astype(jnp.float32)
    )
    pi = jax.nn.softmax(logits(old).astype(jnp.float64))
    samples = every_step(old, pi * STATES * ACTIONS)  # Each state has weight 1.
    solver = PPO(clip=jnp.inf)
    found, kl = solver.policy_loss(new, samples, PROBLEM)
    # The gain is a sum over states by now; the KL is still a mean.
    found = found + (STATES - 1) * PROBLEM.temperature * kl
    advantages = soft_advantages(logits(old))
    q = advantages + ALPHA * jax.nn.log_softmax(logits(old).astype(jnp.float64))
    local = lambda policy: jnp.sum(
        jax.nn.softmax(logits(policy).astype(jnp.float64))
        * (ALPHA * jax.nn.log_softmax(logits(policy).astype(jnp.float64)) - q)
    )
    expected = local(new) - local(old)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_ratio_beyond_the_clip_gains_nothing_and_loses_all_of_it():
    """An action that becomes 1.8 times as likely, once for the better, once not."""
    seen = jnp.ones((2, 1), jnp.float32)
    old = softmax_table(jnp.zeros((1, 2), jnp.float32))
    new = softmax_table(jnp.log(jnp.array([[0.9, 0.1]], jnp.float32)))
    samples = Samples(
        seen,
        jnp.zeros(2, jnp.int32),
        distributions(old, seen),
        jnp.array([1.0, -1.0], jnp.float32),
        jnp.zeros(2, jnp.float32),
    )
    loss, kl = PPO(clip=0.2).policy_loss(new, samples, PROBLEM)
    gain = PROBLEM.temperature * kl - loss
    np.testing.assert_allclose(gain, (1.2 - 1.8) / 2, rtol=1e-5)


def play(getkey):
    """A batch from environments whose first, cut episodes are over."""

    @eqx.filter_jit
    def collect(key):
        start_key, warm_key, key = jr.split(key, 3)
        actors = start(MDP, 64, key=start_key)
        actors, _ = act(MDP, SOMEHOW, actors, 60, key=warm_key)
        return act(MDP, SOMEHOW, actors, 600, key=key)[1]

    return collect(getkey())


def within_errors(estimate: GradientEstimate, expected, bound=5.0):
    spread = jnp.std(estimate.groups, axis=0, ddof=1)
    errors = spread / estimate.groups.shape[0] ** 0.5
    return jnp.max(jnp.abs(estimate.mean - expected) / errors) < bound


def flat(table):
    return table.T.reshape(-1).astype(
        jnp.float32
    )  # As the weights of the policy lie in memory.


def test_reported_gradient_is_that_of_the_inner_loss(getkey):
    """With exact advantages; `0.9 ** 60` of the weight is cut off, which is nothing."""
    batch = play(getkey)
    states = jnp.argmax(batch.observations, axis=-1)
    advantages = soft_advantages(logits(SOMEHOW))[states, batch.actions]
    advantages = advantages.astype(jnp.float32)
    estimate = eqx.filter_jit(inner_gradient)(SOMEHOW, batch, advantages, PROBLEM)
    expected = flat(exact_gradient(logits(SOMEHOW)))
    assert within_errors(estimate, expected)
    # It can tell: neither the wrong sign nor no gradient would pass.
    assert not within_errors(estimate, -expected)
    assert not within_errors(estimate, 0 * expected)
    # The norm without its noise is right within what the noise leaves.
    norm = jnp.linalg.norm(expected)
    assert abs(estimate.norm - norm) < 5 * estimate.norm_error
    assert abs(estimate.norm_squared - norm**2) < 10 * norm * estimate.norm_error


@pytest.mark.parametrize("baseline", [RunningMean(), LeaveOneOut()])
def test_reinforce_descends_the_inner_loss(getkey, baseline):
    solver = Reinforce(baseline=baseline, num_episodes=1024)

    @eqx.filter_jit
    def estimate(key):
        state_key, key = jr.split(key)
        state = solver.init(MDP, SOMEHOW, key=state_key)
        state = eqx.tree_at(lambda s: s.mean, state, jnp.float32(2.0))
        _, advantages = solver.advantages(REWARD, state, PROBLEM)
        return inner_gradient(SOMEHOW, state.batch, advantages, PROBLEM)

    found = estimate(getkey())
    expected = flat(exact_gradient(logits(SOMEHOW)))
    assert within_errors(found, expected)
    assert not within_errors(found, 0.5 * expected)


def test_a_later_step_of_reinforce_counts_less():
    """First action 0, for 1; then action 1, for 4, half of which the first has earned.

    Undiscounted, the second step would make action 1 the likelier one.
    """
    episodes = Trajectories(
        observations=jnp.ones((1, 3, 1), jnp.float32),
        actions=jnp.array([[0, 1]], jnp.int32),
        mask=jnp.ones((1, 2), bool),
        terminated=jnp.ones(1, bool),
    )
    even, zero = softmax_table(jnp.zeros((1, 2), jnp.float32)), jnp.float32(0.0)
    state = ReinforceState(
        even, moments(even), as_batch(episodes), zero, jnp.int32(0), zero
    )
    reward = TableReward(jnp.array([[1.0, 4.0]], jnp.float32))
    solver = Reinforce(baseline=RunningMean())
    after = solver.update(reward, state, problem(1e-3, 0.5), jnp.float32(1.0))
    first, second = logits(after.policy)[0]
    assert first > 0 > second


def test_padding_of_short_episodes_does_not_count(getkey):
    episodes = rollout(MDP, SOMEHOW, 16, key=getkey())
    batch = as_batch(episodes)
    assert float(jnp.sum(batch.alive)) == float(jnp.sum(episodes.mask))
    assert float(batch.num_episodes) == 16
    ends = jnp.sum(batch.terminated | batch.truncated, axis=0)
    np.testing.assert_array_equal(ends, np.ones(16))


def test_episodes_restart_where_they_end_and_truncate_at_the_horizon(getkey):
    batch = play(getkey)
    over = batch.terminated | batch.truncated
    np.testing.assert_array_equal(batch.times[1:] == 0, over[:-1])
    np.testing.assert_array_equal(
        batch.truncated, (batch.times == 59) & ~batch.terminated
    )
    goes_on = ~over[:-1, :, None]
    same = batch.observations[1:] == batch.next_observations[:-1]
    assert bool(jnp.all(same | ~goes_on))


def test_noise_alone_has_no_norm_once_its_bias_is_removed(getkey):
    draws = jr.normal(getkey(), (2000, 16, 30), jnp.float32)
    estimates = jax.vmap(lambda groups: GradientEstimate(groups).norm_squared)(draws)
    error = jnp.std(estimates) / 2000**0.5
    assert abs(jnp.mean(estimates)) < 4 * error
    assert jnp.mean(jnp.sum(jnp.mean(draws, axis=1) ** 2, axis=1)) > 100 * error


def test_conjugate_gradients_solve_and_leave_flat_directions_alone(getkey):
    root = jr.normal(getkey(), (6, 6), jnp.float32)
    matrix = (root @ root.T).at[:, 0].set(0.0).at[0].set(0.0)
    b = jr.normal(getkey(), (6,), jnp.float32).at[0].set(0.0)
    x = jax.jit(lambda b: conjugate_gradients(lambda v: matrix @ v, b, 12))(b)
    np.testing.assert_allclose(matrix @ x, b, atol=1e-3)
    assert x[0] == 0
