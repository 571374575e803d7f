"""The two numbers that both levels of the problem share."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Problem(eqx.Module):
    """Temperature `alpha` and discount `gamma`, as arrays: changing them is free.

    The policy minimizes `L_inner = E_pi sum_t gamma^t (alpha log pi(a_t | s_t) - r_t)`;
    the reward minimizes `L_outer = -E_expert sum_t gamma^t log pi(a_t | s_t)`.
    """

    temperature: Float[Array, ""] = eqx.field(converter=jnp.asarray)
    discount: Float[Array, ""] = eqx.field(converter=jnp.asarray)


def problem(temperature: float = 0.1, discount: float = 0.99) -> Problem:
    """A `Problem` from plain numbers, checked; in `float32`."""
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(
            f"`temperature` must be positive and finite, got {temperature}: without "
            "entropy the policy that explains the demonstrations is not unique. The "
            "paper uses 0.1."
        )
    if not 0 < discount < 1:
        raise ValueError(
            f"`discount` must be between 0 and 1, got {discount}: the objective is an "
            "infinite discounted sum. The paper uses 0.99."
        )
    return Problem(jnp.float32(temperature), jnp.float32(discount))
