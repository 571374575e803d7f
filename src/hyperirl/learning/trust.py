"""The trust region of natural steps.

A step that made the demonstrations less likely is taken back, with the policy it led
to, and the next one is shorter.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from hyperirl.rewards import AbstractReward

Scalar = float | Float[Array, ""]


class Solved(eqx.Module):
    """A reward, the inner solution for it, and the outer loss there."""

    loss: Float[Array, ""]
    reward: AbstractReward
    inner: Any


class Trust(eqx.Module):
    """Where natural steps start from, and how far they go, in discounted nats."""

    base: Solved
    radius: Float[Array, ""]  # How far the next one may go.
    moved: Float[Array, ""]  # How far the last one went.


def judge(
    trust: Trust, tried: Solved, *, slack: Scalar, grow: Scalar, shrink: Scalar
) -> Trust:
    """Goes on from what was tried, or back to where the last good step began.

    The region grows after good steps that reached its border, so it is never far larger
    than the steps that were taken; after a bad one it is a part of that step. After a
    step back the loss to beat is a little higher: it may have been luck.
    """
    good = tried.loss <= trust.base.loss + slack
    base = eqx.tree_at(lambda b: b.loss, trust.base, trust.base.loss + slack / 2)
    grown = jnp.maximum(trust.radius, grow * trust.moved)
    radius = jnp.where(good, grown, shrink * trust.moved)
    radius = jnp.where(jnp.isfinite(trust.base.loss), radius, trust.radius)
    return Trust(choose(good, tried, base), radius, trust.moved)


def choose(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    """One of two pytrees that differ in their arrays only."""
    arrays, rest = eqx.partition(yes, eqx.is_array)
    other = eqx.filter(no, eqx.is_array)
    # A branch is compiled at once; with `where`, each of a hundred arrays is a kernel.
    picked = jax.lax.cond(condition, lambda: arrays, lambda: other)
    return eqx.combine(picked, rest)
