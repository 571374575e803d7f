"""The paper's Algorithm 2 as printed: the reference for the fast sketches."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info, diagnose
from hyperirl.curvature.solver import AbstractSolver


class PaperSCFD(AbstractSolver):
    """Algorithm 2: thin SVD of 2m rows, shrinkage by sigma_m^2, Schur complement.

    Kept for comparison. It is 5 to 30 times slower than `SCFD`, keeps one direction
    less, and its Schur complement loses all digits in float32 when rows are linearly
    dependent and the damping small; then `converged` is False or the answer is wrong.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    size: int = eqx.field(static=True, default=64, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """`Append` for every row, then `Solve`."""
        m = min(self.size, rows.dim)
        damping = damping.astype(rows.dtype)

        def compress(carry, i):
            sketch, alpha, _ = carry
            stacked = jnp.concatenate([sketch, rows.block(i * m, m)])
            _, sigma, vt = jnp.linalg.svd(stacked, full_matrices=False)
            delta = jnp.square(sigma[m - 1])
            alpha = alpha + delta
            shrunk = jnp.sqrt(jnp.maximum(jnp.square(sigma[:m]) - delta, 0.0))
            diagonal = 1 / (jnp.square(shrunk) + alpha)
            return (shrunk[:, None] * vt[:m], alpha, diagonal), None

        blocks, rest = divmod(rows.num_rows, m)
        empty = jnp.zeros((m, rows.dim), rows.dtype)
        init = (empty, damping, jnp.full((m,), 1 / damping, rows.dtype))
        carry = jax.lax.scan(compress, init, jnp.arange(blocks))[0] if blocks else init
        sketch, alpha, diagonal = carry
        pending = rows.block(blocks * m, rest)
        v = _solve(sketch, pending, diagonal, alpha, g.astype(rows.dtype))
        shrinkage = (alpha - damping).astype(jnp.float64)
        return v.astype(jnp.float64), diagnose(
            "PaperSCFD",
            damping=damping.astype(jnp.float64),
            converged=jnp.all(jnp.isfinite(v)),
            certificate=shrinkage / alpha.astype(jnp.float64),
        )


def _solve(sketch, pending, diagonal, alpha, g) -> Float[Array, " d"]:
    """The procedure `Solve`, with the names of the paper."""
    s, r, d = sketch, pending, diagonal
    if r.shape[0] == 0:
        return (g - s.T @ (d * (s @ g))) / alpha
    c = s @ r.T
    p = d[:, None] * c
    k = r @ r.T - c.T @ p + alpha * jnp.eye(r.shape[0], dtype=r.dtype)
    factor = jax.scipy.linalg.cho_factor(k, lower=True)
    solve = lambda x: jax.scipy.linalg.cho_solve(factor, x)
    s_g, r_g = s @ g, r @ g
    inner = solve(p.T @ s_g - r_g)
    z_m_z = s.T @ (d * s_g + p @ inner) - r.T @ inner
    return (g - z_m_z) / alpha
