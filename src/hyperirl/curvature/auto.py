"""The solver that chooses the solver."""

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.direct import Explicit, Woodbury
from hyperirl.curvature.iterative import ConjugateGradient
from hyperirl.curvature.preconditioned import SketchPCG
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
        settings = {"damping": self.damping, "tolerance": self.tolerance}
        if rows.dim <= _FEW_COLUMNS:
            return Explicit(damping=self.damping).solve(rows, g, damping)
        if rows.num_rows <= min(_FEW_ROWS, rows.dim):
            return Woodbury(damping=self.damping).solve(rows, g, damping)
        return jax.lax.cond(
            damping > _STRONG,
            lambda: _renamed(ConjugateGradient(**settings).solve(rows, g, damping)),
            lambda: _renamed(self._or_exact(rows, g, damping, SketchPCG(**settings))),
        )

    def _or_exact(self, rows, g, damping, solver):
        """The solver's answer, or an exact one if it failed and one is affordable."""
        v, info = solver.solve(rows, g, damping)
        if min(rows.dim, rows.num_rows) > _FACTORABLE:
            return v, info
        exact = Explicit if rows.dim <= rows.num_rows else Woodbury
        return jax.lax.cond(
            info.converged,
            lambda: _renamed((v, info)),
            lambda: _renamed(exact(damping=self.damping).solve(rows, g, damping)),
        )


def _renamed(
    answer: tuple[Float[Array, " d"], Info],
) -> tuple[Float[Array, " d"], Info]:
    """Answers of different solvers must have one structure to be chosen between."""
    v, info = answer
    return v, dataclasses.replace(info, solver="Auto")
