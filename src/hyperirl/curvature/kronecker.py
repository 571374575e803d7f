"""Kronecker-factored curvature, layer by layer."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.factored import Factor, FactoredRows
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info, diagnose
from hyperirl.curvature.solver import AbstractSolver


class KFAC(AbstractSolver):
    """`X^T X` replaced by blocks `G (x) A`, one a weight: no blocks off the diagonal.

    For a weight with activations a, deltas d and row weights w,

        G = sum_t w_t^2 d_t d_t^T,    A = sum_t w_t^2 a_t a_t^T / sum_t w_t^2,

    as if the two were independent; for a bias, `G`. Each damped block is inverted
    exactly, through the eigenvectors of G and A. Only for `FactoredRows`. As an inverse
    it is off by half: a cheap direction, not a solution.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Two small eigendecompositions a layer."""
        if not isinstance(rows, FactoredRows):
            raise ValueError(
                f"`KFAC` needs `FactoredRows`, whose activations and deltas it uses; "
                f"got {type(rows).__name__}. Use `Diagonal` for other rows."
            )
        parts, start = [], 0
        for factor in rows.factors:
            part = g[start : start + factor.size]
            parts.append(_solve_block(factor, rows.weights, part, damping))
            start += factor.size
        v = jnp.concatenate(parts)
        return v, diagnose(
            "KFAC", damping=damping, converged=jnp.all(jnp.isfinite(v)), iterations=0
        )


def _solve_block(
    factor: Factor,
    weights: Float[Array, " n"],
    g: Float[Array, " k"],
    damping: Float[Array, ""],
) -> Float[Array, " k"]:
    """Solves `(G (x) A + damping I) v = g` for the weight, and with G for the bias."""
    left, left_vectors = jnp.linalg.eigh(_moment(factor.deltas, weights))
    of_deltas = lambda g: left_vectors @ ((left_vectors.T @ g) / (left + damping))
    if factor.activations is None:
        return of_deltas(g)
    total = jnp.sum(jnp.square(weights.astype(jnp.float64)))
    moment = _moment(factor.activations, weights)
    moment = moment / jnp.where(total > 0, total, 1.0)
    right, right_vectors = jnp.linalg.eigh(moment)
    matrix = g[: factor.num_weights].reshape(left.shape[0], right.shape[0])
    rotated = left_vectors.T @ matrix @ right_vectors
    scaled = rotated / (left[:, None] * right[None, :] + damping)
    v = (left_vectors @ scaled @ right_vectors.T).reshape(-1)
    if not factor.bias:
        return v
    return jnp.concatenate([v, of_deltas(g[factor.num_weights :])])


def _moment(x: Float[Array, "n k"], weights: Float[Array, " n"]) -> Float[Array, "k k"]:
    """`sum_t w_t^2 x_t x_t^T`, in float64."""
    weighted = weights[:, None] * x
    return (weighted.T @ weighted).astype(jnp.float64)
