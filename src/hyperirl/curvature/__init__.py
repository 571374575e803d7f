"""Every way to solve `(X^T X + damping I) v = g`: exact, sketched and matrix-free.

X is a tall matrix of score rows that is never held whole. Every solver is a small
frozen object, called on the rows, as an operator or as a plain array, and on `g`:

    solution = Auto(damping=1e-2)(rows, g)
    solution.v
    solution.info.name, solution.info.relative_residual, solution.info.certificate

Nothing here knows of policies, rewards or environments.
"""

from hyperirl.curvature.algorithm2 import PaperSCFD as PaperSCFD
from hyperirl.curvature.approximate import Diagonal as Diagonal
from hyperirl.curvature.approximate import Identity as Identity
from hyperirl.curvature.approximate import Neumann as Neumann
from hyperirl.curvature.approximate import RankOne as RankOne
from hyperirl.curvature.auto import Auto as Auto
from hyperirl.curvature.autodiff import AutodiffRows as AutodiffRows
from hyperirl.curvature.damping import Absolute as Absolute
from hyperirl.curvature.damping import AbstractDamping as AbstractDamping
from hyperirl.curvature.damping import Relative as Relative
from hyperirl.curvature.damping import as_damping as as_damping
from hyperirl.curvature.direct import Explicit as Explicit
from hyperirl.curvature.direct import Woodbury as Woodbury
from hyperirl.curvature.factored import Factor as Factor
from hyperirl.curvature.factored import FactoredRows as FactoredRows
from hyperirl.curvature.held import solve_held as solve_held
from hyperirl.curvature.iterative import ConjugateGradient as ConjugateGradient
from hyperirl.curvature.kronecker import KFAC as KFAC
from hyperirl.curvature.preconditioned import SketchPCG as SketchPCG
from hyperirl.curvature.rows import AbstractRows as AbstractRows
from hyperirl.curvature.rows import DenseRows as DenseRows
from hyperirl.curvature.rows import as_rows as as_rows
from hyperirl.curvature.sketch import Shrinkage as Shrinkage
from hyperirl.curvature.sketch import Sketch as Sketch
from hyperirl.curvature.sketch import empty_sketch as empty_sketch
from hyperirl.curvature.sketched import SCFD as SCFD
from hyperirl.curvature.sketched import FrequentDirections as FrequentDirections
from hyperirl.curvature.sketched import (
    RobustFrequentDirections as RobustFrequentDirections,
)
from hyperirl.curvature.sketched import sketch_rows as sketch_rows
from hyperirl.curvature.solution import SOLVERS as SOLVERS
from hyperirl.curvature.solution import Info as Info
from hyperirl.curvature.solution import Solution as Solution
from hyperirl.curvature.solver import AbstractSolver as AbstractSolver
from hyperirl.curvature.storage import load_sketch as load_sketch
from hyperirl.curvature.storage import save_sketch as save_sketch
