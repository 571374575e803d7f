"""Soft rewards and advantages: the entropy is part of the return."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def value_errors(
    rewards: Float[Array, "..."],
    values: Float[Array, "..."],
    next_values: Float[Array, "..."],
    terminated: Bool[Array, "..."],
    *,
    discount: Float[Array, ""],
) -> Float[Array, "..."]:
    """`r + gamma V(s') - V(s)` of each step; after a termination the value is 0.

    A truncated step is like any other: the values are told of what it led to.
    """
    return rewards + discount * jnp.where(terminated, 0.0, next_values) - values


def generalized_advantages(
    deltas: Float[Array, "steps envs"],
    ends: Bool[Array, "steps envs"],
    *,
    decay: Float[Array, ""],
    later: Float[Array, "steps envs"] | None = None,
) -> Float[Array, "steps envs"]:
    """Generalized advantages `A_t = delta_t + sum_{k > 0} decay^k later_{t+k}`.

    The sum stops at the end of an episode and of the batch.

    Args:
        deltas: Errors of the values in one step.
        ends: The last steps of episodes.
        decay: `gamma lambda`. With `lambda = 0` the values are trusted, with 1 the
            rewards.
        later: What stands for the deltas of later steps: themselves, or anything with
            the same means, given their states.
    """
    later = deltas if later is None else later
    carried = jnp.where(ends, 0.0, decay)

    def step(future, now):
        delta, later, decay = now
        return later + decay * future, delta + decay * future

    last = jnp.zeros_like(deltas[0])
    return jax.lax.scan(step, last, (deltas, later, carried), reverse=True)[1]
