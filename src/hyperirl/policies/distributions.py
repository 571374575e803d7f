"""Distributions over one action: categorical, Gaussian, and Gaussian squashed by tanh.

Each has `sample`, `log_prob`, `entropy` and `kl` (to another of its kind). A sample is
made of noise and of what the distribution does to it: noise for many steps can be drawn
at once, which takes a fraction of the time.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, PRNGKeyArray

# The trapezoidal rule for a standard normal. With scales up to e^2 the integrand below
# has a bend that Gauss-Hermite rules of this size miss by 0.01; this one by 1e-5.
_NODES = np.linspace(-6.0, 6.0, 97)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


def _normal_nodes(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for expectations over a standard normal vector."""
    if size > 2:  # The third-degree spherical-radial rule: +- sqrt(size) on each axis.
        axes = np.sqrt(size) * np.eye(size)
        return np.concatenate([axes, -axes]), np.full(2 * size, 1 / (2 * size))
    nodes, weights = np.polynomial.hermite_e.hermegauss(9 if size == 1 else 5)
    weights = weights / weights.sum()
    if size == 1:
        return nodes[:, None], weights
    first, second = np.meshgrid(nodes, nodes, indexing="ij")
    grid = np.stack([first.ravel(), second.ravel()], axis=1)
    return grid, np.outer(weights, weights).ravel()


class AbstractDistribution(eqx.Module):
    """A distribution over one action."""

    @abc.abstractmethod
    def draw_noise(self, *, key: PRNGKeyArray) -> Float[Array, "..."]:
        """What chance adds to an action; the same for all distributions of a kind."""

    @abc.abstractmethod
    def transform(self, noise: Float[Array, "..."]) -> Array:
        """The action that this noise leads to."""

    def sample(self, *, key: PRNGKeyArray) -> Array:
        """One draw."""
        return self.transform(self.draw_noise(key=key))

    def sample_and_log_prob(self, *, key: PRNGKeyArray) -> tuple[Array, Array]:
        """A draw that gradients pass through, and its log-probability.

        In the mean over draws, both have the right values and derivatives.
        """
        action = self.sample(key=key)
        return action, self.log_prob(action)

    @abc.abstractmethod
    def log_prob(self, action: Array) -> Float[Array, ""]:
        """The log of the probability, or of the density, of an action."""

    @abc.abstractmethod
    def entropy(self) -> Float[Array, ""]:
        """`-E log p(action)`."""

    @abc.abstractmethod
    def kl(self, other) -> Float[Array, ""]:
        """`E_self [log self - log other]`, for another distribution of this kind."""

    @abc.abstractmethod
    def quadrature(self) -> tuple[Array, Float[Array, " nodes"]]:
        """Actions and weights with `E f(action) ~ sum_i weight_i f(action_i)`.

        Differentiable in the parameters of the distribution, so that the derivative of
        an expectation needs no sampling either.
        """

    @abc.abstractmethod
    def mode(self) -> Array:
        """The action to take when no noise is wanted."""


class Categorical(AbstractDistribution):
    """Choices with probabilities `softmax(logits)`."""

    logits: Float[Array, " actions"]

    @property
    def log_probs(self) -> Float[Array, " actions"]:
        """The log-probability of every choice."""
        return jax.nn.log_softmax(self.logits)

    def draw_noise(self, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """One number, uniform in [0, 1)."""
        return jr.uniform(key, (), self.logits.dtype)

    def transform(self, noise: Float[Array, ""]) -> Int[Array, ""]:
        """By inverting the distribution function: no logarithms."""
        cumulative = jnp.cumsum(jnp.exp(self.logits - jnp.max(self.logits)))
        return jnp.sum(cumulative <= noise * cumulative[-1], dtype=jnp.int32)

    def log_prob(self, action: Int[Array, ""]) -> Float[Array, ""]:
        return self.log_probs[action]

    def entropy(self) -> Float[Array, ""]:
        return -_expectation(self.log_probs, self.log_probs)

    def kl(self, other: "Categorical") -> Float[Array, ""]:
        return _expectation(self.log_probs, self.log_probs - other.log_probs)

    def quadrature(self) -> tuple[Int[Array, " actions"], Float[Array, " actions"]]:
        """Every choice, with its probability: exact."""
        return jnp.arange(self.logits.size, dtype=jnp.int32), jnp.exp(self.log_probs)

    def mode(self) -> Int[Array, ""]:
        return jnp.argmax(self.logits).astype(jnp.int32)


def _expectation(log_probs: Float[Array, " actions"], values: Float[Array, " actions"]):
    """`sum_a p_a values_a`; what is impossible counts nothing, even if infinite."""
    possible = log_probs > -jnp.inf
    return jnp.sum(jnp.exp(log_probs) * jnp.where(possible, values, 0.0))


class Gaussian(AbstractDistribution):
    """`mean + scale_tril @ noise`; `scale_tril` is lower triangular."""

    mean: Float[Array, " act"]
    scale_tril: Float[Array, "act act"]

    @property
    def _log_det(self) -> Float[Array, ""]:
        return jnp.sum(jnp.log(jnp.diagonal(self.scale_tril)))

    def draw_noise(self, *, key: PRNGKeyArray) -> Float[Array, " act"]:
        """A standard normal vector."""
        return jr.normal(key, self.mean.shape, self.mean.dtype)

    def transform(self, noise: Float[Array, " act"]) -> Float[Array, " act"]:
        return self.mean + self.scale_tril @ noise

    def log_prob(self, action: Float[Array, " act"]) -> Float[Array, ""]:
        noise = solve_triangular(self.scale_tril, action - self.mean, lower=True)
        constant = 0.5 * self.mean.size * math.log(2 * math.pi)
        return -0.5 * jnp.sum(noise**2) - self._log_det - constant

    def entropy(self) -> Float[Array, ""]:
        return self._log_det + 0.5 * self.mean.size * (1 + math.log(2 * math.pi))

    def kl(self, other: "Gaussian") -> Float[Array, ""]:
        whiten = lambda x: solve_triangular(other.scale_tril, x, lower=True)
        trace = jnp.sum(whiten(self.scale_tril) ** 2)
        distance = jnp.sum(whiten(self.mean - other.mean) ** 2)
        log_ratio = other._log_det - self._log_det
        return 0.5 * (trace + distance - self.mean.size) + log_ratio

    def quadrature(self) -> tuple[Float[Array, "nodes act"], Float[Array, " nodes"]]:
        """Gauss-Hermite nodes in one and two dimensions, a cubature rule in more.

        Exact for polynomials of degree 9 in two dimensions, of degree 3 in many.
        """
        noise, weights = _normal_nodes(self.mean.size)
        dtype = self.mean.dtype
        nodes = self.mean[None, :] + jnp.asarray(noise, dtype) @ self.scale_tril.T
        return nodes, jnp.asarray(weights, dtype)

    def mode(self) -> Float[Array, " act"]:
        return self.mean


class SquashedGaussian(AbstractDistribution):
    """`center + half_range * tanh(u)` with `u` from `gaussian`: actions in a box.

    The density is that of the action itself, so actions must lie inside the box; those
    on its border are moved in by a relative 1e-6, where the density is still finite.
    """

    gaussian: Gaussian
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    @property
    def _center(self) -> float:
        return (self.high + self.low) / 2

    @property
    def _half_range(self) -> float:
        return (self.high - self.low) / 2

    def squash(self, u: Float[Array, "*nodes act"]) -> Float[Array, "*nodes act"]:
        """The action of a Gaussian draw, or of several."""
        return self._center + self._half_range * jnp.tanh(u)

    def log_slope(self, u: Float[Array, "..."]) -> Float[Array, "..."]:
        """`log d action / d u`, computed without overflow for large `u`."""
        log_slope = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))
        return math.log(self._half_range) + log_slope

    def draw_noise(self, *, key: PRNGKeyArray) -> Float[Array, " act"]:
        """That of the Gaussian."""
        return self.gaussian.draw_noise(key=key)

    def transform(self, noise: Float[Array, " act"]) -> Float[Array, " act"]:
        return self.squash(self.gaussian.transform(noise))

    def sample_and_log_prob(self, *, key: PRNGKeyArray):
        """A draw and its log-density, without inverting the squashing."""
        u = self.gaussian.sample(key=key)
        return self.squash(u), self.gaussian.log_prob(u) - jnp.sum(self.log_slope(u))

    def log_prob(self, action: Float[Array, " act"]) -> Float[Array, ""]:
        unit = (action - self._center) / self._half_range
        u = jnp.arctanh(jnp.clip(unit, -1 + 1e-6, 1 - 1e-6))
        return self.gaussian.log_prob(u) - jnp.sum(self.log_slope(u))

    def entropy(self) -> Float[Array, ""]:
        """`H(u) + sum_i E log(d action_i / d u_i)`, by quadrature."""
        dtype = self.gaussian.mean.dtype
        nodes = jnp.asarray(_NODES, dtype)
        weights = jnp.asarray(_WEIGHTS, dtype)
        scale = jnp.sqrt(jnp.sum(self.gaussian.scale_tril**2, axis=1))
        u = self.gaussian.mean[:, None] + scale[:, None] * nodes[None, :]
        return self.gaussian.entropy() + jnp.sum(self.log_slope(u) * weights[None, :])

    def kl(self, other: "SquashedGaussian") -> Float[Array, ""]:
        """That of the two Gaussians: squashing both changes nothing."""
        return self.gaussian.kl(other.gaussian)

    def quadrature(self) -> tuple[Float[Array, "nodes act"], Float[Array, " nodes"]]:
        """The squashed nodes of the Gaussian."""
        nodes, weights = self.gaussian.quadrature()
        return self.squash(nodes), weights

    def mode(self) -> Float[Array, " act"]:
        """The squashed mean (the median of each component)."""
        return self.squash(self.gaussian.mean)
