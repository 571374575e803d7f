"""The one interface of all solvers of `(X^T X + damping I) v = g`."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping
from hyperirl.curvature.factored import FactoredRows
from hyperirl.curvature.rows import AbstractRows, DenseRows, as_rows
from hyperirl.curvature.solution import Info, Solution


class AbstractSolver(eqx.Module):
    """Called as `solver(rows, g)`; all work common to the solvers is done here.

    Rows that are not finite are taken out and counted, the system is scaled by powers
    of two so that `tr(X^T X)` and `|g|` are about 1 (rounding does not change, and
    nothing overflows), and the derivative of the answer is that of the exact solution,
    `dv = (X^T X + damping I)^-1 (dg - d(X^T X) v)`, with this solver as the inverse.
    """

    damping: eqx.AbstractVar[AbstractDamping]

    @abc.abstractmethod
    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """The answer in float64, given finite, scaled rows and a float64 `g`."""

    def __call__(
        self,
        rows: AbstractRows | Float[Array, "n d"] | np.ndarray,
        g: Float[Array, " d"],
    ) -> Solution:
        """Solves `(X^T X + damping I) v = g`.

        Args:
            rows: X, as an operator or as a plain array of shape (rows, dim).
            g: The right-hand side; `v` has its type.

        Outside `jit`, an answer that cannot be trusted is warned about, once.
        """
        rows = as_rows(rows)
        if g.shape != (rows.dim,):
            raise ValueError(
                f"`g` has shape {g.shape}, but the rows have {rows.dim} columns. Both "
                "must be flat, in the same order of parameters."
            )
        return _solve(self, rows, g).check()


@eqx.filter_jit
def _solve(solver: AbstractSolver, rows: AbstractRows, g: Float[Array, " d"]):
    seen = rows.num_rows
    rows = rows if seen else _one_zero_row(rows)
    usable = rows.usable()
    rows = rows.scale(usable.astype(rows.dtype))
    trace = rows.squared_norm()
    damping = solver.damping.effective(trace / max(rows.dim, 1))
    damping = jnp.where(damping > 0, damping, jnp.nan)  # Refused, if not earlier.
    unit = jax.lax.stop_gradient(_power_of_two(jnp.sqrt(trace)))
    scaled = rows.scale(jnp.full((rows.num_rows,), 1 / unit, rows.dtype))

    def matvec(v):
        product = rows.normal_mv(v.astype(rows.dtype)).astype(v.dtype)
        return product + damping.astype(v.dtype) * v

    @jax.jit  # So that it is traced once: as the solve, and as its own transpose.
    def solved(b):
        b = b.astype(jnp.float64)
        size = _power_of_two(jnp.linalg.norm(b))
        v, info = solver.solve(scaled, b / size, damping / unit**2)
        return (v * (size / unit**2)).astype(g.dtype), info

    v, info = jax.lax.custom_linear_solve(
        matvec, g, lambda _, b: solved(b), symmetric=True, has_aux=True
    )
    refused = jnp.sum(~usable, dtype=jnp.int32)
    info = eqx.tree_at(
        lambda info: (info.damping, info.rows_seen, info.rows_refused),
        info,
        (damping, jnp.asarray(seen, jnp.int32), refused),
    )
    return Solution(v, jax.lax.stop_gradient(info))


def _one_zero_row(rows: AbstractRows) -> AbstractRows:
    """In place of no rows at all, which products and samples would have to look for."""
    if isinstance(rows, FactoredRows):
        return jax.tree.map(lambda x: jnp.zeros((1, *x.shape[1:]), x.dtype), rows)
    return DenseRows(jnp.zeros((1, rows.dim), rows.dtype))


def _power_of_two(x: Float[Array, ""]) -> Float[Array, ""]:
    """The power of two next to a positive number; 1 for zero and what is not finite."""
    good = (x > 0) & jnp.isfinite(x)
    exponent = jnp.round(jnp.log2(jnp.where(good, x, 1.0)))
    exponent = jnp.clip(exponent, -120, 120)  # The range of float32.
    return jnp.ldexp(jnp.ones_like(x), exponent.astype(jnp.int32))
