"""Exact solves: by a matrix of the parameters, or by a matrix of the rows."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.iterative import residual_certificate
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info, diagnose
from hyperirl.curvature.solver import AbstractSolver

_TOLERANCE = 1e-10  # Relative residual after which refinement stops.
_ACCEPTED = 1e-4  # Relative residual above which the answer is marked as failed.
_MAX_REFINEMENTS = 5
_WELL_DAMPED = 1e-5  # Of the trace; below it, float32 products are too coarse.
_SEED = 827  # Of the sign vectors; unlikely to have made anybody's rows.
_SMALL = 512  # Rows of a matrix that costs little in float64 too.
_BLOCK = 1024  # Rows held at a time.
_PANEL = 1024  # Columns of the normal matrix computed together.


class Explicit(AbstractSolver):
    """Forms `X^T X + damping I` and factors it: `O(n d^2 + d^3)`, `d^2` numbers.

    The reference for all others. Rows are added block by block, only the lower
    triangle is formed, and the Cholesky solution is refined with float64 residuals.
    Rows in float32 are summed in float32, unless `double` asks for float64, the damping
    is below 1e-5 of the trace, or the matrix is small.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    double: bool = eqx.field(static=True, default=False, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Cholesky in the parameters, then refinement."""

        def with_dtype(dtype):
            factor = jnp.linalg.cholesky(
                normal_matrix(rows, damping, dtype), symmetrize_input=False
            )
            inverse = lambda r: _cholesky_solve(factor, r)
            return _refine(rows, g, damping, inverse)

        double = self.double or rows.dim <= _SMALL
        return _answer("Explicit", rows, g, damping, with_dtype, double)


class Woodbury(AbstractSolver):
    """Solves in the rows: `O(n^2 d + n^3)`, `n^2` numbers; for fewer rows than columns.

    `v = (g - X^T (X X^T + damping I)^-1 X g) / damping`, refined like `Explicit`. For
    factored rows the products `X X^T` cost the factors and not `d`.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    double: bool = eqx.field(static=True, default=False, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Cholesky in the rows, then refinement."""

        def with_dtype(dtype):
            inverse = dual_inverse(rows.astype(dtype), damping)
            return _refine(rows, g, damping, inverse)

        double = self.double or rows.num_rows <= _SMALL
        return _answer("Woodbury", rows, g, damping, with_dtype, double)


def normal_matrix(
    rows: AbstractRows, damping: Float[Array, ""], dtype
) -> Float[Array, "d d"]:
    """The lower triangle of `X^T X + damping I`; what is above it is not defined."""
    d = rows.dim
    starts = range(0, d, max(_PANEL, -(-d // 16)))
    panels = [(start, min(start + starts.step, d)) for start in starts]
    size = max(min(_BLOCK, rows.num_rows), 1)

    def add(i, total):
        block = rows.block(i * size, size).astype(dtype)
        for start, stop in panels:
            part = total[start:stop, :stop] + block[:, start:stop].T @ block[:, :stop]
            total = total.at[start:stop, :stop].set(part)
        return total

    init = damping.astype(dtype) * jnp.eye(d, dtype=dtype)
    return jax.lax.fori_loop(0, -(-rows.num_rows // size), add, init)


def dual_inverse(
    rows: AbstractRows, damping: Float[Array, ""]
) -> Callable[[Float[Array, " d"]], Float[Array, " d"]]:
    """`r -> (X^T X + damping I)^-1 r` through the Gram matrix of the rows."""
    factor = dual_factor(rows, damping)
    return lambda r: dual_solve(rows, factor, damping, r)


def dual_factor(rows: AbstractRows, damping: Float[Array, ""]) -> Float[Array, "n n"]:
    """The Cholesky factor of `X X^T + damping I`, in float64."""
    gram = rows.gram().astype(jnp.float64)
    gram = gram + damping * jnp.eye(rows.num_rows, dtype=jnp.float64)
    return jnp.linalg.cholesky(gram, symmetrize_input=False)


def dual_solve(
    rows: AbstractRows,
    factor: Float[Array, "n n"],
    damping: Float[Array, ""],
    r: Float[Array, " d"],
) -> Float[Array, " d"]:
    """`(r - X^T (X X^T + damping I)^-1 X r) / damping`."""
    y = rows.mv(r.astype(rows.dtype)).astype(jnp.float64)
    z = _cholesky_solve(factor, y).astype(rows.dtype)
    return (r - rows.rmv(z).astype(jnp.float64)) / damping


def _answer(name, rows, g, damping, with_dtype, double: bool):
    """Solves in the type of the rows if well damped, else in float64."""
    if double or rows.dtype == jnp.float64:
        v, r, steps, spread = with_dtype(jnp.float64)
    else:
        v, r, steps, spread = jax.lax.cond(
            damping > _WELL_DAMPED,
            lambda: with_dtype(rows.dtype),
            lambda: with_dtype(jnp.float64),
        )
    size = jnp.linalg.norm(g)
    relative = jnp.linalg.norm(r) / jnp.where(size > 0, size, 1.0)
    return v, diagnose(
        name,
        damping=damping,
        converged=relative < _ACCEPTED,
        relative_residual=relative,
        iterations=steps,
        certificate=residual_certificate(r, v, damping),
        effective_dimension=jnp.clip(
            rows.dim - spread, 0.0, min(rows.dim, rows.num_rows)
        ),
    )


def _cholesky_solve(factor: Float[Array, "k k"], r: Float[Array, " k"]):
    """Solves with a lower Cholesky factor; the answer is float64."""
    return jsl.cho_solve((factor, True), r.astype(factor.dtype)).astype(jnp.float64)


def _refine(rows, g, damping, inverse):
    """Repeats `v += inverse(g - A v)` until the residual is small or stops falling.

    Returns the solution, its residual, the steps taken, and an estimate of
    `tr(damping A^-1)`, which is `d` less the effective dimension.
    """
    residual = lambda v: g - (rows.normal_mv64(v) + damping * v)
    size = jnp.linalg.norm(g)

    def unfinished(state):
        _, r, previous, steps = state
        norm = jnp.linalg.norm(r)
        return (
            (norm > _TOLERANCE * size)
            & (norm < 0.5 * previous)
            & (steps < _MAX_REFINEMENTS)
        )

    def step(state):
        v, r, _, steps = state
        new = v + inverse(r)
        return new, residual(new), jnp.linalg.norm(r), steps + 1

    v = inverse(g)
    init = (v, residual(v), jnp.asarray(jnp.inf, jnp.float64), 0)
    v, r, _, steps = jax.lax.while_loop(unfinished, step, init)
    return v, r, steps, _inverse_trace(rows.dim, damping, inverse)


def _inverse_trace(dim: int, damping, inverse) -> Float[Array, ""]:
    """Hutchinson's estimate of `damping tr(A^-1)`, with eight fixed sign vectors."""
    signs = jr.rademacher(jr.key(_SEED), (8, dim), jnp.float64)
    forms = jax.vmap(lambda z: z @ inverse(z))(signs)
    return damping * jnp.mean(forms)
