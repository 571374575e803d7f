"""Soft values of a batch, and the report that is made from them.

Shared by the solvers that sample: they differ in how they improve a policy, not in how
the result is judged.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperirl.environments import AbstractEnvironment
from hyperirl.inner.acting import Batch
from hyperirl.inner.advantages import generalized_advantages
from hyperirl.inner.critic import Critic, fit
from hyperirl.inner.diagnostics import inner_gradient
from hyperirl.inner.gap import optimality_gap
from hyperirl.inner.solver import Report, Reward
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem


def soft_rewards(
    reward: Reward, policy: AbstractPolicy, batch: Batch, problem: Problem
) -> Float[Array, "steps envs"]:
    """`r(s, a) - alpha log pi(a | s)` of every step, for the policy that took it."""
    per_step = lambda f: jax.vmap(jax.vmap(f))(batch.observations, batch.actions)
    rewards = per_step(reward).astype(jnp.float32)
    return rewards - problem.temperature * per_step(policy.log_prob)


def soft_values(
    critic: Critic,
    reward: Reward,
    policy: AbstractPolicy,
    batch: Batch,
    problem: Problem,
    *,
    trace: Float[Array, ""],
    num_fits: int,
) -> tuple[Critic, Float[Array, "steps envs"], Float[Array, "steps envs"]]:
    """The critic fitted to a batch of the policy; its soft values and advantages."""
    rewards = soft_rewards(reward, policy, batch, problem)

    def advantages(values: Array, next_values: Array) -> Array:
        return generalized_advantages(
            rewards,
            values,
            next_values,
            batch.terminated,
            batch.truncated,
            discount=problem.discount,
            trace=trace,
        )

    observations, after = batch.observations, batch.next_observations
    return fit(critic, observations, after, advantages, num_iterations=num_fits)


def report_on(
    environment: AbstractEnvironment,
    reward: Reward,
    policy: AbstractPolicy,
    batch: Batch,
    problem: Problem,
    *,
    values: Float[Array, "steps envs"],
    advantages: Float[Array, "steps envs"],
    kl: Float[Array, ""],
    steps: Int[Array, ""],
) -> Report:
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
    return Report(
        gradient_norm=gradient.norm,
        gradient_norm_error=gradient.norm_error,
        gradient_norm_squared=gradient.norm_squared,
        kl=kl,
        entropy=jnp.sum(entropy * batch.alive) / jnp.sum(batch.alive),
        soft_return=jnp.sum(first * (values + advantages)) / jnp.sum(first),
        gap=gap,
        gap_error=gap_error,
        steps=steps,
    )
