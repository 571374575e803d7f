"""Solves with a matrix that is held already: there are no rows to form it from."""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping
from hyperirl.curvature.iterative import residual_certificate
from hyperirl.curvature.solution import Solution, diagnose


def solve_held(
    matrix: Float[Array, "d d"], g: Float[Array, " d"], damping: AbstractDamping
) -> Solution:
    """`(M + damping I) v = g` for a symmetric `M >= 0`, by Cholesky in float64."""
    wide, side = matrix.astype(jnp.float64), g.astype(jnp.float64)
    size = len(side)
    value = damping.effective(jnp.trace(wide) / size)
    system = wide + value * jnp.eye(size, dtype=jnp.float64)
    factor = jnp.linalg.cholesky(system, symmetrize_input=False), True
    v = jsl.cho_solve(factor, side)
    residual = side - system @ v
    norm = jnp.linalg.norm(side)
    relative = jnp.linalg.norm(residual) / jnp.where(norm > 0, norm, 1.0)
    info = diagnose(
        "Explicit",
        damping=value,
        converged=jnp.all(jnp.isfinite(v)),
        relative_residual=relative,
        iterations=0,
        certificate=residual_certificate(residual, v, value),
    )
    return Solution(v.astype(g.dtype), info)
