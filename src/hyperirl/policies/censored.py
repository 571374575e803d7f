"""A Gaussian whose draws are clipped to a box: what is executed at the bounds.

A policy that asks for more than its motors can give gets the bound, and that is what a
demonstration holds. So the bound has a probability of its own, the mass beyond it, and
everything inside has the Gaussian's density. The likelihood of an action is the one or
the other: of a clipped component a probability, of any other a density per unit.
"""

import math
from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtr
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.describing import Fields
from hyperirl.policies.distributions import AbstractDistribution
from hyperirl.policies.heads import AbstractHead
from hyperirl.spaces import ActionSpace, Box
from hyperirl.trajectories import Trajectories

_FAR = 4.5  # In scales; what is farther from the mean counts for nothing.
_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_MIN_LOG_SCALE = math.log(0.01)
_AT_BOUND = 1e-6  # In half boxes: what is nearer to a bound is at it.
Scale = Literal["diagonal", "state"]


def touches_bounds(trajectories: Trajectories, space: ActionSpace) -> bool:
    """Whether an action is at a bound of its box, so that it must have been clipped."""
    if not isinstance(space, Box) or not math.isfinite(space.high - space.low):
        return False
    actions = np.asarray(trajectories.actions, np.float64)
    center, half = (space.high + space.low) / 2, (space.high - space.low) / 2
    units = np.abs(actions[np.asarray(trajectories.mask)] - center) / half
    return bool(np.any(units >= 1 - _AT_BOUND))


def _log_phi(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return -0.5 * z**2 - _LOG_ROOT


class CensoredGaussian(AbstractDistribution):
    """`clip(mean + scale * noise, low, high)`, each component by itself."""

    mean: Float[Array, " act"]
    scale: Float[Array, " act"]
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def _ends(self) -> tuple[Float[Array, " act"], Float[Array, " act"]]:
        """The bounds in scales from the mean."""
        return (self.low - self.mean) / self.scale, (self.high - self.mean) / self.scale

    def _inside(self, degree: int) -> list[Float[Array, " act"]]:
        """`E [z^k, not clipped]` of the noise `z`, for `k` up to `degree`."""
        a, b = self._ends()
        # From the nearer tail, so that small differences keep their digits.
        flip = a > 0
        total = ndtr(jnp.where(flip, -a, b)) - ndtr(jnp.where(flip, -b, a))
        at_a, at_b = jnp.exp(_log_phi(a)), jnp.exp(_log_phi(b))
        moments = [total, at_a - at_b]
        for k in range(2, degree + 1):
            edge = a ** (k - 1) * at_a - b ** (k - 1) * at_b
            moments.append((k - 1) * moments[k - 2] + edge)
        return moments[: degree + 1]

    def log_chances(self) -> tuple[Float[Array, " act"], Float[Array, " act"]]:
        """The logs of the probabilities of the lower and of the upper bound."""
        a, b = self._ends()
        return log_ndtr(a), log_ndtr(-b)

    def draw_noise(self, *, key: PRNGKeyArray) -> Float[Array, " act"]:
        """A standard normal vector."""
        return jax.random.normal(key, self.mean.shape, self.mean.dtype)

    def transform(self, noise: Float[Array, " act"]) -> Float[Array, " act"]:
        return jnp.clip(self.mean + self.scale * noise, self.low, self.high)

    def sample_and_log_prob(self, *, key: PRNGKeyArray):
        """A draw, and minus the entropy.

        The log-likelihood jumps at the bounds, and the derivative of a draw of it
        misses that; its mean is known.
        """
        return self.sample(key=key), -self.entropy()

    def log_prob(self, action: Float[Array, " act"]) -> Float[Array, ""]:
        at_low, at_high = self.log_chances()
        z = (action - self.mean) / self.scale
        log_density = _log_phi(z) - jnp.log(self.scale)
        edge = _AT_BOUND * (self.high - self.low) / 2
        inside = jnp.where(action >= self.high - edge, at_high, log_density)
        return jnp.sum(jnp.where(action <= self.low + edge, at_low, inside))

    def entropy(self) -> Float[Array, ""]:
        """`-E log p`, with `p` a probability at the bounds and a density inside."""
        total, _, squares = self._inside(2)
        inside = (jnp.log(self.scale) + _LOG_ROOT) * total + 0.5 * squares
        clipped = sum(jnp.exp(log) * log for log in self.log_chances())
        return jnp.sum(inside - clipped)

    def kl(self, other: "CensoredGaussian") -> Float[Array, ""]:
        total, mean, squares = self._inside(2)
        shift = (self.mean - other.mean) / other.scale
        ratio = self.scale / other.scale
        theirs = shift**2 * total + 2 * shift * ratio * mean + ratio**2 * squares
        inside = 0.5 * (theirs - squares) - jnp.log(ratio) * total
        pairs = zip(self.log_chances(), other.log_chances(), strict=True)
        clipped = sum(jnp.exp(ours) * (ours - theirs) for ours, theirs in pairs)
        return jnp.sum(inside + clipped)

    def information(self) -> tuple[Array, Array, Array]:
        """The Fisher information of mean and log-scale, of each component.

        Returns:
            That of the mean, of both together, and of the log-scale.
        """
        total, first, second, third, fourth = self._inside(4)
        a, b = self._ends()
        at_low, at_high = self.log_chances()
        low = jnp.exp(2 * _log_phi(a) - at_low)  # Of the probability of a bound.
        high = jnp.exp(2 * _log_phi(b) - at_high)
        mean = (second + low + high) / self.scale**2
        both = (third - first + a * low + b * high) / self.scale
        scale = fourth - 2 * second + total + a**2 * low + b**2 * high
        return mean, both, scale

    def quadrature(self) -> tuple[Float[Array, "nodes act"], Float[Array, " nodes"]]:
        """Both bounds and Gauss-Legendre nodes inside, in one and two dimensions.

        In more, two nodes on each axis that have the mean and the variance: exact for
        polynomials of degree 2, and beyond the bounds if need be.
        """
        if self.mean.size > 2:
            return self._cubature()
        nodes, weights = jax.vmap(_rule, (0, 0, None, None, None))(
            self.mean, self.scale, self.low, self.high, 15 if self.mean.size == 1 else 8
        )
        if self.mean.size == 1:
            return nodes.T, weights[0]
        first, second = jnp.meshgrid(nodes[0], nodes[1], indexing="ij")
        grid = jnp.stack([first.ravel(), second.ravel()], axis=1)
        return grid, jnp.outer(weights[0], weights[1]).ravel()

    def _cubature(self) -> tuple[Float[Array, "nodes act"], Float[Array, " nodes"]]:
        mean, variance = self.moments()
        size = mean.size
        axes = jnp.diag(jnp.sqrt(size * jnp.maximum(variance, 1e-12)))
        nodes = mean[None, :] + jnp.concatenate([axes, -axes])
        return nodes, jnp.full(2 * size, 1 / (2 * size), mean.dtype)

    def moments(self) -> tuple[Float[Array, " act"], Float[Array, " act"]]:
        """Mean and variance of the action."""
        total, first, second = self._inside(2)
        at_low, at_high = (jnp.exp(log) for log in self.log_chances())
        # Around the mean of the Gaussian clipped into the box, to keep digits.
        origin = jnp.clip(self.mean, self.low, self.high)
        shift = self.mean - origin
        low, high = self.low - origin, self.high - origin
        mean = shift * total + self.scale * first + low * at_low + high * at_high
        squares = shift**2 * total + 2 * shift * self.scale * first
        squares = squares + self.scale**2 * second + low**2 * at_low + high**2 * at_high
        return origin + mean, squares - mean**2

    def mode(self) -> Float[Array, " act"]:
        """The mean, clipped (the median of each component)."""
        return jnp.clip(self.mean, self.low, self.high)


def _rule(mean, scale, low, high, degree: int):
    """Nodes and weights of one component; the bounds are the first two nodes."""
    places, sizes = np.polynomial.legendre.leggauss(degree)
    a, b = (low - mean) / scale, (high - mean) / scale
    left, right = jnp.clip(a, -_FAR, _FAR), jnp.clip(b, -_FAR, _FAR)
    half = 0.5 * (right - left)
    z = left + half * (1 + jnp.asarray(places, mean.dtype))
    density = half * jnp.asarray(sizes, mean.dtype) * jnp.exp(_log_phi(z))
    at_low, at_high = ndtr(a), ndtr(-b)
    # The rule is inexact where much is inside: its weights are made to sum to that.
    inside = (1 - at_low - at_high) / jnp.maximum(jnp.sum(density), 1e-30)
    ends = jnp.stack([jnp.full_like(mean, low), jnp.full_like(mean, high)])
    nodes = jnp.concatenate([ends, mean + scale * z])
    return nodes, jnp.concatenate([jnp.stack([at_low, at_high]), density * inside])


class CensoredHead(AbstractHead):
    """`z` are mean and log-scale in units of half the box, from its center.

    With `covariance="state"` the network puts out both; with `"diagonal"` the scale is
    a parameter of its own. The scale is at least `min_scale`: an expert that never
    varies would have it shrink for ever, and the likelihood and the scale of a reward
    that explains it would then be whatever this limit is.
    """

    kind: ClassVar[str] = "censored"
    size: int = eqx.field(static=True)
    bounds: tuple[float, float] = eqx.field(static=True)
    covariance: Scale = eqx.field(static=True, default="diagonal")
    log_scale_bounds: tuple[float, float] = eqx.field(
        static=True, default=(_MIN_LOG_SCALE, 2.0)
    )

    def __check_init__(self):
        if self.covariance not in ("diagonal", "state"):
            raise ValueError(
                "Clipped components are independent: `covariance` must be 'diagonal' "
                f"or 'state', got {self.covariance!r}."
            )
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(
                f"Actions can be clipped only to a finite box, got {self.bounds}. "
                "Leave them as they are, or give the space bounds."
            )

    @property
    def _half(self) -> float:
        return (self.bounds[1] - self.bounds[0]) / 2

    @property
    def min_scale(self) -> float:
        """The smallest scale, in units of the action."""
        return self._half * math.exp(self.log_scale_bounds[0])

    def at_min_scale(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        at_limit = z[self.size :] <= self.log_scale_bounds[0]
        return jnp.mean(at_limit.astype(z.dtype))

    @property
    def action_space(self) -> Box:
        return Box(self.size, *self.bounds)

    @property
    def network_size(self) -> int:
        return 2 * self.size if self.covariance == "state" else self.size

    @property
    def free_size(self) -> int:
        return 0 if self.covariance == "state" else self.size

    def distribution(self, z: Float[Array, " outputs"]) -> CensoredGaussian:
        mean = sum(self.bounds) / 2 + self._half * z[: self.size]
        scale = self._half * jnp.exp(jnp.clip(z[self.size :], *self.log_scale_bounds))
        return CensoredGaussian(mean, scale, *self.bounds)

    def fisher_factor(self, z: Float[Array, " outputs"]):
        """Two columns for each component: a Cholesky factor of two rows."""
        mean, both, scale = self.distribution(z).information()
        low, high = self.log_scale_bounds
        free = ((z[self.size :] >= low) & (z[self.size :] <= high)).astype(z.dtype)
        mean, both, scale = mean * self._half**2, both * self._half * free, scale * free
        first = jnp.sqrt(jnp.maximum(mean, 0.0))
        below = jnp.where(first > 0, both / jnp.where(first > 0, first, 1.0), 0.0)
        second = jnp.sqrt(jnp.maximum(scale - below**2, 0.0))
        rows = [[jnp.diag(first), jnp.zeros_like(jnp.diag(first))]]
        return jnp.block([*rows, [jnp.diag(below), jnp.diag(second)]])

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "size": self.size,
            "bounds": [float(x) for x in self.bounds],
            "covariance": self.covariance,
            "log_scale_bounds": [float(x) for x in self.log_scale_bounds],
        }

    @classmethod
    def rebuild(cls, fields: Fields) -> "CensoredHead":
        """From plain values."""
        size = fields.take("size", int)
        covariance = fields.choice("covariance", *get_args(Scale))
        bounds = fields.interval("bounds")
        return cls(size, bounds, covariance, fields.interval("log_scale_bounds"))
