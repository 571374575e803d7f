"""Exact answers, in `float64`, for problems small enough to have them.

`tabular` solves finite MDPs by linear algebra, `lqr` linear-quadratic problems by the
soft Riccati equation. Both are differentiable, so that the derivative of a whole inner
problem is one `jax.grad` away; docs/exact.md lists what they are checked against.
"""

from hyperirl.exact import lqr as lqr
from hyperirl.exact import tabular as tabular
