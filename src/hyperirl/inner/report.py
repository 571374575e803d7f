"""Soft values of a batch, and the report that is made from them.

Shared by the solvers that sample: they differ in how they improve a policy, not in how
the result is judged.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Batch
from hyperirl.inner.advantages import generalized_advantages, value_errors
from hyperirl.inner.critic import Critic, fit
from hyperirl.inner.diagnostics import inner_gradient
from hyperirl.inner.gap import optimality_gap
from hyperirl.inner.solver import Reward, SolveReport
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.programs import compiled
from hyperirl.rewards import recorded


@compiled
def rewards_paid(reward: Reward, batch: Batch) -> Float[Array, "steps envs *choices"]:
    """What the steps of a batch are paid; where all choices were tried, each of them.

    Apart from what learns from it, so that another kind of reward compiles no more than
    this.
    """
    if batch.branches is not None:
        choices = jnp.arange(batch.branches.terminated.shape[-1], dtype=jnp.int32)
        of_all = lambda observation: jax.vmap(reward, (None, 0))(observation, choices)
        rewards = jax.vmap(jax.vmap(of_all))(batch.observations)
        return rewards.astype(jnp.float32)
    if (rewards := recorded(reward, batch)) is not None:
        return rewards
    rewards = jax.vmap(jax.vmap(reward))(batch.observations, batch.actions)
    return rewards.astype(jnp.float32)


def soft_rewards(
    paid: Float[Array, "steps envs"],
    policy: AbstractPolicy,
    batch: Batch,
    problem: Problem,
) -> Float[Array, "steps envs"]:
    """`r(s, a) - alpha log pi(a | s)` of every step, for the policy that took it."""
    log_prob = jax.vmap(jax.vmap(policy.log_prob))
    return paid - problem.temperature * log_prob(batch.observations, batch.actions)


class SoftValues(NamedTuple):
    """What a batch shows of the soft values of its policy."""

    critic: Critic
    """Fitted to the batch."""
    seen: Float[Array, "steps envs"]
    """The values of its states, by what followed them."""
    advantages: Float[Array, "steps envs"]
    """Of the actions that were taken."""


@compiled
def soft_values(
    critic: Critic,
    paid: Float[Array, "steps envs *choices"],
    policy: AbstractPolicy,
    batch: Batch,
    problem: Problem,
    *,
    trace: Float[Array, ""],
    num_fits: int,
) -> SoftValues:
    """Fits a critic to a batch of the policy, and estimates advantages with it.

    The error of the values in one step is

        delta(s, a) = r(s, a) - alpha log pi(a | s) + gamma V(s') - V(s).

    The advantage of an action is its own delta and those of the steps after it. If the
    batch has branches, the mean of delta over all actions stands for the delta of each
    later step. It depends on the state alone: the luck of later actions is no longer in
    the estimate, and what is left vanishes as the critic becomes exact.
    """
    alpha, gamma, branches = problem.temperature, problem.discount, batch.branches
    ends = batch.terminated | batch.truncated
    if branches is None:
        gains, over = soft_rewards(paid, policy, batch, problem), batch.terminated
        after, probs = batch.next_observations, None
    else:
        over, after = branches.terminated, branches.observations
        choices = jnp.arange(over.shape[-1], dtype=jnp.int32)
        every = lambda f: jax.vmap(
            jax.vmap(jax.vmap(f, (None, 0)), (0, None)), (0, None)
        )
        log_probs = every(policy.log_prob)(batch.observations, choices)
        gains, probs = paid - alpha * log_probs, jnp.exp(log_probs)

    def deltas(values: Array, next_values: Array) -> tuple[Array, Array]:
        """Of the actions taken, and in the mean over all of them if it is known."""
        if probs is None:
            error = value_errors(gains, values, next_values, over, discount=gamma)
            return error, error
        errors = value_errors(
            gains, values[..., None], next_values, over, discount=gamma
        )
        taken = jnp.take_along_axis(errors, batch.actions[..., None], -1)[..., 0]
        return taken, jnp.sum(probs * errors, -1)

    def errors(values: Array, next_values: Array) -> Array:
        mean = deltas(values, next_values)[1]
        return generalized_advantages(mean, ends, decay=gamma * trace)

    critic, values, next_values = fit(
        critic, batch.observations, after, errors, num_iterations=num_fits
    )
    taken, mean = deltas(values, next_values)
    seen = values + generalized_advantages(mean, ends, decay=gamma * trace)
    advantages = generalized_advantages(taken, ends, decay=gamma * trace, later=mean)
    return SoftValues(critic, seen, advantages)


def report_on(
    environment: AbstractWorld,
    reward: Reward,
    policy: AbstractPolicy,
    batch: Batch,
    problem: Problem,
    *,
    seen: Float[Array, "steps envs"],
    advantages: Float[Array, "steps envs"],
    kl: Float[Array, ""],
    steps: Int[Array, ""],
) -> SolveReport:
    """From experience of the policy that no update has used.

    The soft return is the mean value of the states in which episodes of the batch
    began, as the batch shows it: rewards while they last, then the critic's value. NaN
    if no episode began.
    """
    gradient = inner_gradient(policy, batch, advantages, problem)
    gap, gap_error = optimality_gap(
        environment, reward, policy, batch, gradient, problem
    )
    entropy = jax.vmap(jax.vmap(policy.entropy))(batch.observations)
    first = (batch.times == 0).astype(jnp.float32)
    return SolveReport(
        gradient_norm=gradient.norm,
        gradient_norm_error=gradient.norm_error,
        gradient_norm_squared=gradient.norm_squared,
        kl=kl,
        entropy=jnp.sum(entropy * batch.alive) / jnp.sum(batch.alive),
        soft_return=jnp.sum(first * seen) / jnp.sum(first),
        gap=gap,
        gap_error=gap_error,
        steps=steps,
    )
