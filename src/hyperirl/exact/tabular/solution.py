"""Soft value iteration: the inner problem of a finite MDP, solved to rounding.

The soft-optimal policy obeys, with temperature `alpha` and discount `gamma`,

    q(s, a) = r(s, a) + gamma sum_s' P(s' | s, a) v(s')
    v(s) = alpha log sum_a exp(q(s, a) / alpha)
    pi(a | s) = exp((q(s, a) - v(s)) / alpha)

where what is missing from a row of `P` is the chance that the task ends: value zero.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.environments import Tabular
from hyperirl.exact._float64 import float64
from hyperirl.policies import Policy, softmax_table
from hyperirl.problem import Problem

_TOLERANCE = 1e-9  # Two more Newton steps follow, each squaring the error.
_MAX_STEPS = 200


class SoftValues(eqx.Module):
    """Soft values and the policy they make, with a leading time axis if finite."""

    q: Float[Array, "*time states actions"]
    v: Float[Array, "*time states"]
    logits: Float[Array, "*time states actions"]  # Log-probabilities: (q - v) / alpha.


def kernel(mdp: Tabular) -> Float[Array, "states actions states"]:
    """Transition probabilities in `float64`.

    As in the environment, a row that misses less than 1e-6 sums to 1.
    """
    transitions = float64(mdp.transitions)
    total = jnp.sum(transitions, axis=-1, keepdims=True)
    return transitions / jnp.where(1 - total < 1e-6, total, 1.0)


def reward_table(
    mdp: Tabular, reward: Callable[[Array, Array], Array]
) -> Float[Array, "states actions"]:
    """Any reward function as a table, in its own precision."""
    observations = jax.vmap(mdp.observe)(jnp.arange(mdp.num_states))
    actions = jnp.arange(mdp.action_space.num_actions, dtype=jnp.int32)
    per_action = jax.vmap(reward, in_axes=(None, 0))
    return jax.vmap(per_action, in_axes=(0, None))(observations, actions)


def policy_value(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    reward: Float[Array, "states actions"],
    problem: Problem,
) -> Float[Array, " states"]:
    """The soft value of any policy: `(I - gamma P_pi)^-1 E_pi[r - alpha log pi]`."""
    logits, reward, problem = float64((logits, reward, problem))
    log_pi = jax.nn.log_softmax(logits)
    pi = jnp.exp(log_pi)
    gain = jnp.sum(pi * (reward - problem.temperature * log_pi), axis=1)
    moves = jnp.einsum("sa,sat->st", pi, kernel(mdp))
    return jnp.linalg.solve(jnp.eye(gain.size) - problem.discount * moves, gain)


def soft_value_iteration(
    mdp: Tabular, reward: Float[Array, "states actions"], problem: Problem
) -> SoftValues:
    """The soft-optimal values of the infinite discounted problem.

    By soft policy iteration, which is Newton's method on `v`: evaluate the policy that
    is soft-greedy for the last values. The last two steps are differentiated. Since the
    derivative of a Newton step with respect to its start vanishes at the solution, that
    is exact for derivatives with respect to `reward` up to the third.
    """
    reward, problem = float64((reward, problem))
    v = _policy_iteration(*jax.lax.stop_gradient((mdp, reward, problem)))
    v = _improve(mdp, reward, problem, _improve(mdp, reward, problem, v))
    return _backup(mdp, reward, problem, v)


def _backup(mdp: Tabular, reward: Array, problem: Problem, v: Array) -> SoftValues:
    q = reward + problem.discount * kernel(mdp) @ v
    scaled = q / problem.temperature
    v = problem.temperature * jax.nn.logsumexp(scaled, axis=1)
    return SoftValues(q, v, jax.nn.log_softmax(scaled))


def _improve(mdp: Tabular, reward: Array, problem: Problem, v: Array) -> Array:
    """One Newton step: the value of the policy that is soft-greedy for `v`."""
    logits = _backup(mdp, reward, problem, v).logits
    return policy_value(mdp, logits, reward, problem)


def _policy_iteration(mdp: Tabular, reward: Array, problem: Problem) -> Array:
    """Newton steps from zero until the values hardly change."""

    def unfinished(carry) -> Array:
        step, old, new = carry
        change = jnp.max(jnp.abs(new - old))
        return (step < _MAX_STEPS) & (change > _TOLERANCE * jnp.max(jnp.abs(new)))

    def advance(carry):
        step, _, new = carry
        return step + 1, new, _improve(mdp, reward, problem, new)

    zero = jnp.zeros(mdp.num_states)
    start = (0, zero, _improve(mdp, reward, problem, zero))
    return jax.lax.while_loop(unfinished, advance, start)[-1]


def finite_soft_value_iteration(
    mdp: Tabular,
    reward: Float[Array, "states actions"],
    problem: Problem,
    horizon: int,
) -> SoftValues:
    """The soft-optimal values when nothing counts after `horizon` steps.

    The first axis is time: the best policy depends on the steps left.
    """
    reward, problem = float64((reward, problem))

    def backup(v: Float[Array, " states"], _):
        values = _backup(mdp, reward, problem, v)
        return values.v, values

    end = jnp.zeros(mdp.num_states)
    _, values = jax.lax.scan(backup, end, length=horizon, reverse=True)
    return values


def soft_optimal_policy(
    mdp: Tabular, reward: Callable[[Array, Array], Array], problem: Problem
) -> Policy:
    """The soft-optimal policy for any reward function, in the environment's precision.

    Computed in `float64`. A table of rewards is `hyperirl.rewards.TableReward(table)`.
    """
    logits = soft_value_iteration(mdp, reward_table(mdp, reward), problem).logits
    return softmax_table(logits.astype(mdp.rewards.dtype))
