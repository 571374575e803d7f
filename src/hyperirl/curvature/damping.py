"""How strongly the curvature is damped: an absolute value, or relative to its size."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float


class AbstractDamping(eqx.Module):
    """What is added to the diagonal of `X^T X`."""

    @abc.abstractmethod
    def effective(self, mean_square: Float[Array, ""]) -> Float[Array, ""]:
        """The value added, given `tr(X^T X) / dim`."""


class Absolute(AbstractDamping):
    """`damping = value`."""

    value: Float[Array, ""] = eqx.field(converter=lambda x: positive("damping", x))

    def effective(self, mean_square: Float[Array, ""]) -> Float[Array, ""]:
        """The value itself."""
        return self.value


class Relative(AbstractDamping):
    """`damping = factor * tr(X^T X) / dim`; free of the scale of rows and rewards.

    Rows that are all zero have no scale; `factor` itself is used for them.
    """

    factor: Float[Array, ""] = eqx.field(converter=lambda x: positive("factor", x))

    def effective(self, mean_square: Float[Array, ""]) -> Float[Array, ""]:
        """The factor times the mean diagonal entry."""
        scale = jnp.where(mean_square > 0, mean_square, jnp.ones_like(mean_square))
        return self.factor * scale


def as_damping(damping: AbstractDamping | float | Float[Array, ""]) -> AbstractDamping:
    """Numbers are absolute."""
    return damping if isinstance(damping, AbstractDamping) else Absolute(damping)


def positive(name: str, value: float | Float[Array, ""]) -> Float[Array, ""]:
    """A float64 scalar, refused unless positive as far as its value is known."""
    array = jnp.asarray(value, jnp.float64)
    if not isinstance(array, Tracer) and not bool(jnp.all(array > 0)):
        raise ValueError(
            f"`{name}` must be positive, got {value}. The Fisher matrix of a policy is "
            "singular (a constant added to all logits changes nothing), so there is no "
            f"undamped solution. Try `{name}=1e-2`, or `Relative(1e-2)` to follow the "
            "scale of the rows."
        )
    return array
