"""Conjugate gradients preconditioned by a sketch of part of the rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.direct import dual_factor, dual_solve
from hyperirl.curvature.iterative import Iterate, conjugate_gradient
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info
from hyperirl.curvature.solver import AbstractSolver


class SketchPCG(AbstractSolver):
    """Exact at sketch cost: a row sample solves the hard directions, CG does the rest.

    The sketch P has `size` rows of X, drawn with probability `p` proportional to their
    squared length and divided by `sqrt(size p)`, so that `E[P^T P] = X^T X`. Conjugate
    gradients are preconditioned with `(P^T P + damping I)^-1`, applied through the
    Gram matrix of the sample. The answer does not depend on the draw, only the number
    of iterations does, so the draw is fixed by `seed`.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    size: int = eqx.field(static=True, default=512, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-2, kw_only=True)
    max_iterations: int = eqx.field(static=True, default=200, kw_only=True)
    seed: int = eqx.field(static=True, default=0, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Preconditioned conjugate gradients from zero."""
        iterate = preconditioned(rows, g, damping, self, plain=False)
        return iterate.v, iterate.diagnose("SketchPCG", g, damping)


def preconditioned(
    rows: AbstractRows,
    g: Float[Array, " d"],
    damping: Float[Array, ""],
    solver: SketchPCG,
    *,
    plain: bool | Bool[Array, ""],
) -> Iterate:
    """The solver's iteration; `plain`, without its preconditioner, nor its cost."""
    sample = row_sample(rows, min(solver.size, rows.num_rows), seed=solver.seed)
    nothing = jnp.zeros((sample.num_rows,) * 2, jnp.float64)
    factor = jax.lax.cond(plain, lambda: nothing, lambda: dual_factor(sample, damping))
    return conjugate_gradient(
        rows,
        g,
        damping,
        precondition=lambda r: jax.lax.cond(
            plain, lambda: r, lambda: dual_solve(sample, factor, damping, r)
        ),
        tolerance=solver.tolerance,
        max_iterations=solver.max_iterations,
    )


def row_sample(rows: AbstractRows, size: int, *, seed: int) -> AbstractRows:
    """`size` rows, scaled so that their normal matrix is that of all on average.

    Drawn with replacement, with probabilities `p` proportional to squared length; all
    rows, as they are, if there are no more than `size`.
    """
    if rows.num_rows <= size:
        return rows
    norms = rows.squared_norms()
    total = jnp.sum(norms)
    uniform = jnp.full_like(norms, 1 / rows.num_rows)
    p = jnp.where(total > 0, norms / jnp.where(total > 0, total, 1.0), uniform)
    levels = jnp.cumsum(p)
    draws = jr.uniform(jr.key(seed), (size,), jnp.float64) * levels[-1]
    indices = jnp.minimum(jnp.searchsorted(levels, draws), rows.num_rows - 1)
    chances = p[indices]
    scale = jnp.where(chances > 0, 1 / jnp.sqrt(size * chances), 0.0)
    return rows.take(indices).scale(scale.astype(rows.dtype))
