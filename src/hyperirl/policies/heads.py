"""How a vector of numbers becomes a distribution over actions.

A head reads the vector `z` that a policy puts out for one observation. It also knows
the Fisher information of the distribution with respect to `z`, as a factor `L` with
`F = L L^T`: the expectation over actions, done in closed form.
"""

import abc
import math
from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from hyperirl.describing import Fields
from hyperirl.policies.distributions import (
    AbstractDistribution,
    Categorical,
    Gaussian,
    SquashedGaussian,
)
from hyperirl.spaces import ActionSpace, Box, Discrete

Covariance = Literal["diagonal", "full", "state"]


class AbstractHead(eqx.Module):
    """Maps the outputs of a policy to a distribution."""

    @property
    @abc.abstractmethod
    def action_space(self) -> ActionSpace:
        """What the actions of the distribution are."""

    @property
    @abc.abstractmethod
    def network_size(self) -> int:
        """How many of the outputs come from the network."""

    @property
    @abc.abstractmethod
    def free_size(self) -> int:
        """How many are parameters of their own, the same for every observation."""

    @abc.abstractmethod
    def distribution(self, z: Float[Array, " outputs"]) -> AbstractDistribution:
        """The distribution that `z` stands for."""

    @abc.abstractmethod
    def fisher_factor(
        self, z: Float[Array, " outputs"]
    ) -> Float[Array, "outputs columns"]:
        """`L` with `L L^T = E_a [grad_z log p(a) grad_z log p(a)^T]`."""

    @property
    def min_scale(self) -> float | None:
        """The smallest scale of an action; None: there is no limit to be told of."""
        return None

    def at_min_scale(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """The share of an action's components whose scale is at that limit."""
        return jnp.zeros((), z.dtype)


class CategoricalHead(AbstractHead):
    """`z` are the logits."""

    kind: ClassVar[str] = "categorical"
    num_actions: int = eqx.field(static=True)

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.num_actions)

    @property
    def network_size(self) -> int:
        return self.num_actions

    @property
    def free_size(self) -> int:
        return 0

    def distribution(self, z: Float[Array, " outputs"]) -> Categorical:
        return Categorical(z)

    def fisher_factor(self, z: Float[Array, " outputs"]):
        """Column `a` is `sqrt(p_a) (e_a - p)`."""
        p = jax.nn.softmax(z)
        return (jnp.eye(z.size, dtype=z.dtype) - p[:, None]) * jnp.sqrt(p)[None, :]

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {"num_actions": self.num_actions}

    @classmethod
    def rebuild(cls, fields: Fields) -> "CategoricalHead":
        """From plain values."""
        return cls(fields.take("num_actions", int))


class GaussianHead(AbstractHead):
    """`z` are the mean and the log-scale, or the scale's Cholesky factor.

    With `covariance="state"` the network puts out both (diagonal covariance); with
    `"diagonal"` and `"full"` the scale is a parameter of its own. The diagonal of the
    factor is stored as its log and kept within `log_scale_bounds`. With `bounds` the
    action is squashed into that box by tanh.
    """

    kind: ClassVar[str] = "gaussian"
    size: int = eqx.field(static=True)
    covariance: Covariance = eqx.field(static=True, default="diagonal")
    bounds: tuple[float, float] | None = eqx.field(static=True, default=None)
    log_scale_bounds: tuple[float, float] = eqx.field(static=True, default=(-10.0, 2.0))

    def __check_init__(self):
        if self.covariance not in ("diagonal", "full", "state"):
            raise ValueError(
                f"`covariance` must be 'diagonal', 'full' or 'state', got "
                f"{self.covariance!r}."
            )
        if self.bounds is not None and not all(map(math.isfinite, self.bounds)):
            raise ValueError(
                "Actions can be squashed only into a finite box, got "
                f"{self.bounds}. Leave them unsquashed, or give the space bounds."
            )
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ValueError(
                f"`bounds` are the lowest action and a higher one, got {self.bounds}."
            )
        low, high = self.log_scale_bounds
        if not low <= high:  # Also catches NaN.
            raise ValueError(
                "`log_scale_bounds` are the lowest and the highest log-scale, got "
                f"{self.log_scale_bounds}."
            )

    @property
    def action_space(self) -> Box:
        return Box(self.size) if self.bounds is None else Box(self.size, *self.bounds)

    @property
    def network_size(self) -> int:
        return 2 * self.size if self.covariance == "state" else self.size

    @property
    def free_size(self) -> int:
        free = {"state": 0, "diagonal": self.size}
        return free.get(self.covariance, self.size * (self.size + 1) // 2)

    def scale_tril(self, scale: Float[Array, " _"]) -> Float[Array, "act act"]:
        """The Cholesky factor of the covariance from its part of `z`."""
        log_diagonal = jnp.clip(scale[: self.size], *self.log_scale_bounds)
        tril = jnp.diag(jnp.exp(log_diagonal))
        if self.covariance == "full":
            tril = tril.at[np.tril_indices(self.size, -1)].set(scale[self.size :])
        return tril

    def distribution(self, z: Float[Array, " outputs"]):
        gaussian = Gaussian(z[: self.size], self.scale_tril(z[self.size :]))
        if self.bounds is None:
            return gaussian
        return SquashedGaussian(gaussian, *self.bounds)

    def fisher_factor(self, z: Float[Array, " outputs"]):
        """Mean and scale are independent blocks.

        With `a = mean + C noise`, the score of the mean is `C^-T noise`, and that of
        `C` is `tril(C^-T S)` with `S = noise noise^T - I`. The entries of the symmetric
        `S` are uncorrelated, with variance 2 on the diagonal and 1 off it, so there is
        a column for each of them. Squashing changes none of it.
        """
        c, to_scale = jax.vjp(self.scale_tril, z[self.size :])
        eye = jnp.eye(self.size, dtype=z.dtype)
        inverse = solve_triangular(c, eye, lower=True).T

        def scale_scores(i: int, j: int) -> Float[Array, " _"]:
            """For `S` with its `i, j` entry one standard deviation from zero."""
            s = jnp.zeros_like(c).at[i, j].set(1.0 if i != j else math.sqrt(2.0))
            s = s.at[j, i].set(s[i, j])
            return to_scale(jnp.tril(inverse @ s))[0]

        full = self.covariance == "full"
        pairs = [(i, j) for i in range(self.size) for j in range(i + 1)]
        columns = [scale_scores(i, j) for i, j in pairs if full or i == j]
        return jax.scipy.linalg.block_diag(inverse, jnp.stack(columns, axis=1))

    def describe(self) -> dict[str, Any]:
        """As plain values; None in `log_scale_bounds` is no bound on that side."""
        finite = [float(x) if math.isfinite(x) else None for x in self.log_scale_bounds]
        return {
            "size": self.size,
            "covariance": self.covariance,
            "bounds": None if self.bounds is None else [float(x) for x in self.bounds],
            "log_scale_bounds": finite,
        }

    @classmethod
    def rebuild(cls, fields: Fields) -> "GaussianHead":
        """From plain values."""
        size = fields.take("size", int)
        covariance = fields.choice("covariance", *get_args(Covariance))
        bounds = fields.optional("bounds", fields.interval)
        return cls(size, covariance, bounds, fields.interval("log_scale_bounds"))
