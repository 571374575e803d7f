"""Solvers that see the rows once, in blocks, and keep a sketch of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.rows import AbstractRows, as_rows
from hyperirl.curvature.sketch import (
    Shrinkage,
    Sketch,
    compress,
    empty_sketch,
    query,
)
from hyperirl.curvature.solution import Info
from hyperirl.curvature.solver import AbstractSolver


class SCFD(AbstractSolver):
    """Spectral compensation frequent directions: the sketch, and Delta as damping.

    `X^T X + damping I <= S^T S + (damping + Delta) I <= X^T X + (damping + Delta) I`:
    never less damped than asked for. The paper's Algorithm 2, with Gram matrices
    for singular value decompositions; `PaperSCFD` is the algorithm as printed.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    size: int = eqx.field(static=True, default=64, kw_only=True)
    buffer: int | None = eqx.field(static=True, default=None, kw_only=True)
    rule: Shrinkage = eqx.field(static=True, default=Shrinkage.NEXT, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """One pass over the rows and one query."""
        return query(_sketch(self, rows), damping, g, 1.0)


class FrequentDirections(AbstractSolver):
    """The sketch without compensation: less damped than asked for where Delta is lost.

    Its certificate `Delta / damping` says nothing unless the sketch is nearly exact.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    size: int = eqx.field(static=True, default=64, kw_only=True)
    buffer: int | None = eqx.field(static=True, default=None, kw_only=True)
    rule: Shrinkage = eqx.field(static=True, default=Shrinkage.NEXT, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """One pass over the rows and one query."""
        return query(_sketch(self, rows), damping, g, 0.0)


class RobustFrequentDirections(AbstractSolver):
    """The sketch with half of Delta as damping: the smallest certificate of the three.

    The sketched matrix is at most `Delta / 2` away on either side, so the relative
    error is at most `Delta / (2 damping + Delta)`.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    size: int = eqx.field(static=True, default=64, kw_only=True)
    buffer: int | None = eqx.field(static=True, default=None, kw_only=True)
    rule: Shrinkage = eqx.field(static=True, default=Shrinkage.NEXT, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """One pass over the rows and one query."""
        return query(_sketch(self, rows), damping, g, 0.5)


def sketch_rows(
    rows: AbstractRows | Float[Array, "n d"] | np.ndarray,
    *,
    size: int,
    buffer: int | None = None,
    rule: Shrinkage = Shrinkage.NEXT,
) -> Sketch:
    """The sketch of all rows, in one pass over blocks as long as the buffer."""
    rows = as_rows(rows)
    sketch = empty_sketch(
        rows.dim, size=size, buffer=buffer, rule=rule, dtype=rows.dtype
    )
    return _stream(sketch, rows)


def _sketch(solver, rows: AbstractRows) -> Sketch:
    return sketch_rows(rows, size=solver.size, buffer=solver.buffer, rule=solver.rule)


@eqx.filter_jit
def _stream(sketch: Sketch, rows: AbstractRows) -> Sketch:
    """Whole blocks are compressed one after the other; the rest waits in the buffer.

    The rows kept and the next block share one array, which is written in place.
    """
    size, length = sketch.rows.shape[0], sketch.buffer.shape[0]
    write = jax.lax.dynamic_update_slice_in_dim

    def step(carry, i):
        stack, shrinkage, rounding, refused = carry
        block, corner = rows.block_and_gram(i * length, length)
        stack = write(stack, block, size, 0)
        above = stack[:size] @ stack.T
        below = jnp.concatenate([above[:, size:].T, corner], axis=1)
        gram = jnp.concatenate([above, below])
        kept, lost, noise, bad = compress(stack, size, sketch.rule, gram)
        stack = write(stack, kept, 0, 0)
        return (stack, shrinkage + lost, rounding + noise, refused + bad), None

    blocks, rest = divmod(rows.num_rows, length)
    init = (sketch.stacked(), sketch.shrinkage, sketch.rounding, sketch.rows_refused)
    carry = jax.lax.scan(step, init, jnp.arange(blocks))[0] if blocks else init
    sketch = Sketch(
        rows=carry[0][:size],
        buffer=sketch.buffer,
        pending=sketch.pending,
        shrinkage=carry[1],
        rounding=carry[2],
        rows_seen=sketch.rows_seen + blocks * length,
        rows_refused=carry[3],
        rule=sketch.rule,
    )
    return sketch.append(rows.block(blocks * length, rest)) if rest else sketch
