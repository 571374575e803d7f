"""The solver that chooses the solver."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.direct import Explicit, Woodbury
from hyperirl.curvature.preconditioned import SketchPCG, preconditioned
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info
from hyperirl.curvature.solver import AbstractSolver

_FEW_COLUMNS = 512
_FEW_ROWS = 1024
_STRONG = 1e-2  # Of the trace: above, plain CG needs fewer than a dozen products.
_FACTORABLE = 4096  # Rows or columns of a matrix that may be factored as a last resort.


class Auto(AbstractSolver):
    """Picks by the number of columns, of rows, and by the damping; `info.name` says.

    - At most 512 columns: `Explicit`.
    - At most 1,024 rows, and fewer rows than columns: `Woodbury`.
    - Damping above 1% of `tr(X^T X)`: `ConjugateGradient`.
    - Else `SketchPCG`; and should that miss its tolerance, because the damping is
      next to nothing, the exact solver whose matrix has at most 4,096 rows.

    Columns and rows are known when the solver is compiled; the damping is looked at
    when it runs, so that another damping does not compile again.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-2, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Hands the system to the solver picked."""
        v, info = self._pick(rows, g, damping)
        return v, dataclasses.replace(info, solver="Auto")

    def _pick(self, rows, g, damping):
        if rows.dim <= _FEW_COLUMNS:
            return Explicit(damping=self.damping).solve(rows, g, damping)
        if rows.num_rows <= min(_FEW_ROWS, rows.dim):
            return Woodbury(damping=self.damping).solve(rows, g, damping)
        plain = damping > _STRONG
        solver = SketchPCG(damping=self.damping, tolerance=self.tolerance)
        iterate = preconditioned(rows, g, damping, solver, plain=plain)
        info = iterate.diagnose("SketchPCG", g, damping)
        unaided = iterate.diagnose("ConjugateGradient", g, damping).picked
        picked = jnp.where(plain, unaided, info.picked)
        info = dataclasses.replace(info, picked=picked, solver="Auto")
        return self._or_exact(rows, g, damping, iterate.v, info)

    def _or_exact(self, rows, g, damping, v, info):
        """The answer given, or an exact one if it failed and one is affordable."""
        if min(rows.dim, rows.num_rows) > _FACTORABLE:
            return v, info
        kind = Explicit if rows.dim <= rows.num_rows else Woodbury
        exact = kind(damping=self.damping, double=True)

        def solve_exactly():
            v, info = exact.solve(rows, g, damping)
            return v, dataclasses.replace(info, solver="Auto")

        return jax.lax.cond(info.converged, lambda: (v, info), solve_exactly)
