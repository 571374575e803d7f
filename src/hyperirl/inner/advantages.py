"""Soft rewards and advantages: the entropy is part of the return."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def generalized_advantages(
    rewards: Float[Array, "steps envs"],
    values: Float[Array, "steps envs"],
    next_values: Float[Array, "steps envs"],
    terminated: Bool[Array, "steps envs"],
    truncated: Bool[Array, "steps envs"],
    *,
    discount: Float[Array, ""],
    trace: Float[Array, ""],
) -> Float[Array, "steps envs"]:
    """Generalized advantage estimates, `A_t = sum_k (gamma lambda)^k delta_{t+k}`.

    Here `delta_t = r_t + gamma V(s_{t+1}) - V(s_t)`, with the value of what comes after
    a termination 0. The sum stops at the end of an episode and of the batch; at a
    truncation it does so after bootstrapping from the value of the state reached.

    Args:
        rewards: Those of the soft problem, `r - alpha log pi`.
        values: Of the observations.
        next_values: Of what the action led to, before any restart.
        terminated: Where the task was over.
        truncated: Where the episode was cut off.
        discount: `gamma`.
        trace: `lambda`. 0 trusts the values, 1 the rewards.
    """
    future = jnp.where(terminated, 0.0, next_values)
    deltas = rewards + discount * future - values
    carried = jnp.where(terminated | truncated, 0.0, discount * trace)

    def step(later, now):
        delta, decay = now
        advantage = delta + decay * later
        return advantage, advantage

    last = jnp.zeros_like(deltas[0])
    return jax.lax.scan(step, last, (deltas, carried), reverse=True)[1]
