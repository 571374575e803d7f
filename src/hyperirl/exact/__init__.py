"""Exact answers, in `float64`, for problems small enough to have them.

`tabular` solves finite MDPs by linear algebra, `lqr` linear-quadratic problems by the
soft Riccati equation. Both are differentiable, so that the derivative of a whole inner
problem is one `jax.grad` away; docs/exact.md lists what they are checked against.

Who can use a closed form but does not depend on one asks `closed_form(environment)`.
"""

from hyperirl.exact import lqr as lqr
from hyperirl.exact import tabular as tabular
from hyperirl.exact.closed import AbstractClosedForm as AbstractClosedForm
from hyperirl.exact.closed import Standing as Standing
from hyperirl.exact.closed import closed_form as closed_form
from hyperirl.exact.closed import require_closed_form as require_closed_form
