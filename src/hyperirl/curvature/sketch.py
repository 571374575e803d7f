"""A small matrix that stands for many rows, and can be updated, merged and queried.

A sketch of X keeps `size` rows S, a buffer of rows not yet compressed, and the total
shrinkage Delta, such that in the Loewner order

    S^T S <= X^T X <= S^T S + Delta I.

The damping enters only when a sketch is queried, so one sketch serves all dampings.
Each compression costs one Gram matrix, its eigendecomposition in float64, and one
product, instead of a singular value decomposition of tall matrices.
"""

import enum
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from hyperirl.curvature.damping import positive
from hyperirl.curvature.rows import squared_lengths
from hyperirl.curvature.solution import Info, Solution, diagnose
from hyperirl.curvature.span import span_solve

_WIDE = 100_000  # Columns from which the buffer is no longer than the sketch.
_SHORT_BUFFER, _LONG_BUFFER = 16, 128


class Shrinkage(enum.Enum):
    """By what the squared singular values shrink in a compression."""

    NEXT = "next"
    """The largest one that is discarded: `size` rows are kept."""
    LAST = "last"
    """The smallest one that is kept, as in the paper: `size - 1` rows are kept."""


class Sketch(eqx.Module):
    """Stands for the rows appended to it. Make one with `empty_sketch`."""

    rows: Float[Array, "m d"]
    """S: orthogonal rows after a compression."""
    buffer: Float[Array, "b d"]
    """Rows that wait for the next compression; zero past `pending`."""
    pending: Int[Array, ""]
    """How many rows wait."""
    shrinkage: Float[Array, ""]
    """Delta: the sum of all shrinkages so far."""
    rounding: Float[Array, ""]
    """Bound on what the products in the type of the rows can have added to Delta."""
    rows_seen: Int[Array, ""]
    rows_refused: Int[Array, ""]
    rule: Shrinkage = eqx.field(static=True, default=Shrinkage.NEXT)

    @property
    def size(self) -> int:
        """The number of rows kept, `m`."""
        return self.rows.shape[0]

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self.rows.shape[1]

    def append(self, block: Float[Array, "k d"]) -> "Sketch":
        """Adds rows, in the type of the sketch.

        Those that are not finite or too large to square in it are refused.
        """
        length = self.buffer.shape[0]
        sketch, block = self, jnp.asarray(block, self.buffer.dtype)
        for start in range(0, block.shape[0], max(length, 1)):
            sketch = _append(sketch, block[start : start + length])
        return sketch

    def merge(self, other: "Sketch") -> "Sketch":
        """The sketch of the rows of both; their shrinkages add up.

        Merging in another order gives another sketch with the same guarantee.
        """
        ours, theirs = _format(self), _format(other)
        if ours != theirs:
            raise ValueError(
                f"Sketches to be merged must agree in size, buffer, columns, type and "
                f"rule; got {ours} and {theirs}. Build both with the same settings."
            )
        stack = jnp.concatenate([self.stacked(), other.stacked()])
        both = compress(stack, self.size, self.rule)
        return Sketch(
            rows=both.rows,
            buffer=jnp.zeros_like(self.buffer),
            pending=jnp.zeros_like(self.pending),
            shrinkage=self.shrinkage + other.shrinkage + both.shrinkage,
            rounding=self.rounding + other.rounding + both.rounding,
            rows_seen=self.rows_seen + other.rows_seen,
            rows_refused=self.rows_refused + other.rows_refused,
            rule=self.rule,
        )

    def solve(
        self,
        damping: float | Float[Array, ""],
        g: Float[Array, " d"],
        *,
        compensation: float = 1.0,
    ) -> Solution:
        """Solves `(S^T S + a I) v = g`, with `a = damping + compensation * Delta`.

        Args:
            damping: Any positive number; the sketch does not depend on it.
            g: The right-hand side.
            compensation: 1 for SCFD, 1/2 for robust frequent directions, 0 for plain.
        """
        damping = positive("damping", damping)
        v, info = query(self, damping, g.astype(jnp.float64), compensation)
        return Solution(v.astype(g.dtype), info)

    def stacked(self) -> Float[Array, "mb d"]:
        """S above the waiting rows."""
        return jnp.concatenate([self.rows, self.buffer])


def empty_sketch(
    dim: int,
    *,
    size: int,
    buffer: int | None = None,
    rule: Shrinkage = Shrinkage.NEXT,
    dtype=jnp.float32,
) -> Sketch:
    """A sketch of no rows.

    Args:
        dim: The number of columns.
        size: Rows to keep; no more than `dim` are.
        buffer: Rows to collect between compressions. More lose less; about twice
            `size` are fastest. The default is that, but from 16 to 128, and `size` if
            that is more or the rows have 100,000 columns.
        rule: See `Shrinkage`.
        dtype: Of the rows.
    """
    if size < 1:
        raise ValueError(
            f"`size` must be at least 1, got {size}. It is the number of rows the "
            "sketch keeps; 64 is a good start."
        )
    size = min(size, dim)
    if buffer is None:
        fastest = min(max(2 * size, _SHORT_BUFFER), _LONG_BUFFER)
        buffer = size if dim >= _WIDE else max(size, fastest)
    return Sketch(
        rows=jnp.zeros((size, dim), dtype),
        buffer=jnp.zeros((max(buffer, 1), dim), dtype),
        pending=jnp.zeros((), jnp.int32),
        shrinkage=jnp.zeros((), jnp.float64),
        rounding=jnp.zeros((), jnp.float64),
        rows_seen=jnp.zeros((), jnp.int32),
        rows_refused=jnp.zeros((), jnp.int32),
        rule=rule,
    )


class Compressed(NamedTuple):
    """What a compression leaves."""

    rows: Float[Array, "m d"]
    shrinkage: Float[Array, ""]
    """What this compression adds to Delta."""
    rounding: Float[Array, ""]
    refused: Int[Array, ""]


def compress(
    stack: Float[Array, "k d"],
    size: int,
    rule: Shrinkage,
    gram: Float[Array, "k k"] | None = None,
) -> Compressed:
    """The best `size` rows for those of the stack.

    The stack's Gram matrix may be given by those who have it for less.

    With `Y` the stack, `Y Y^T = U diag(s) U^T`, sorted down, and `delta` by the rule,
    the new rows are `sqrt(max(s - delta, 0) / s) U^T Y`. All singular values above 0
    are scaled by a factor of at most 1, so rounding can not make the sketch exceed the
    rows.

    The Gram matrix tells whether all rows are finite and their squares do well in
    their type. If not, the work is done again with care: rows that cannot be squared
    are refused, and the others divided by a power of two.
    """
    gram = (stack @ stack.T if gram is None else gram).astype(jnp.float64)
    largest = jnp.max(jnp.diagonal(gram))
    usual = jnp.all(jnp.isfinite(gram)) & (largest > 1e-18) & (largest < 1e18)

    def plainly(stack, gram) -> Compressed:
        one = jnp.ones((), jnp.float64)
        none = jnp.zeros((), jnp.int32)
        return _combine(stack, gram, one, size, rule, none)

    def carefully(stack, _) -> Compressed:
        stack, refused = refuse(stack)
        scale = _power_of_two_above(jnp.max(jnp.abs(stack)))
        small = stack / scale.astype(stack.dtype)
        gram = (small @ small.T).astype(jnp.float64)
        return _combine(stack, gram, jnp.square(scale), size, rule, refused)

    return jax.lax.cond(usual, plainly, carefully, stack, gram)


def _combine(
    stack: Float[Array, "k d"],
    gram: Float[Array, "k k"],
    square: Float[Array, ""],
    size: int,
    rule: Shrinkage,
    refused: Int[Array, ""],
) -> Compressed:
    """The compression of rows whose Gram matrix is `square` times `gram`."""
    values, vectors = jnp.linalg.eigh(gram, symmetrize_input=False)
    values, vectors = jnp.maximum(values[::-1], 0.0), vectors[:, ::-1]
    dtype, dim = stack.dtype, stack.shape[1]
    noise = 4 * float(jnp.finfo(dtype).eps) * values[0]
    if rule is Shrinkage.LAST:
        delta = values[size - 1]
    elif size < min(len(gram), dim):
        delta = jnp.where(values[size] > noise, values[size], 0.0)
    else:
        delta = jnp.zeros_like(noise)
    kept = values[:size]
    share = jnp.maximum(kept - delta, 0.0) / jnp.where(kept > noise, kept, jnp.inf)
    combine = (jnp.sqrt(share)[:, None] * vectors[:, :size].T).astype(dtype)
    return Compressed(combine @ stack, delta * square, noise * square, refused)


def _append(sketch: Sketch, block: Float[Array, "k d"]) -> Sketch:
    """Adds at most as many rows as the buffer holds, compressing when it is full."""
    length, count = sketch.buffer.shape[0], block.shape[0]
    block, refused = refuse(block)
    joint = jnp.concatenate([sketch.buffer, jnp.zeros_like(block)])
    joint = jax.lax.dynamic_update_slice_in_dim(joint, block, sketch.pending, 0)
    pending = sketch.pending + count

    def full(_):
        stack = jnp.concatenate([sketch.rows, joint[:length]])
        rows, shrinkage, rounding, _ = compress(stack, sketch.size, sketch.rule)
        rest = jnp.zeros_like(sketch.buffer).at[:count].set(joint[length:])
        return rows, rest, pending - length, shrinkage, rounding

    def waiting(_):
        zero = jnp.zeros_like(sketch.shrinkage)
        return sketch.rows, joint[:length], pending, zero, zero

    rows, buffer, pending, shrinkage, rounding = jax.lax.cond(
        pending >= length, full, waiting, None
    )
    return Sketch(
        rows=rows,
        buffer=buffer,
        pending=pending,
        shrinkage=sketch.shrinkage + shrinkage,
        rounding=sketch.rounding + rounding,
        rows_seen=sketch.rows_seen + count,
        rows_refused=sketch.rows_refused + refused,
        rule=sketch.rule,
    )


def query(
    sketch: Sketch,
    damping: Float[Array, ""],
    g: Float[Array, " d"],
    compensation: float,
) -> tuple[Float[Array, " d"], Info]:
    """The solution in float64 and its diagnostics.

    With c the compensation, `-(1 - c) Delta <= S^T S + c Delta I - X^T X <= c Delta`,
    and no eigenvalue of the sketched matrix is below `damping + c Delta`, so the
    relative error is at most `max(c, 1 - c) Delta / (damping + c Delta)`.
    """
    total = damping + compensation * sketch.shrinkage
    v, values = span_solve(sketch.stacked(), g, total)
    wrong = max(compensation, 1 - compensation) * sketch.shrinkage + sketch.rounding
    name = {1.0: "SCFD", 0.5: "RobustFrequentDirections"}.get(
        compensation, "FrequentDirections"
    )
    return v, diagnose(
        name,
        damping=damping,
        converged=jnp.all(jnp.isfinite(v)),
        certificate=wrong / total,
        effective_dimension=jnp.sum(values / (values + damping)),
        rows_seen=sketch.rows_seen,
        rows_refused=sketch.rows_refused,
    )


def refuse(block: Float[Array, "k d"]) -> tuple[Float[Array, "k d"], Int[Array, ""]]:
    """The block with zeros for rows that cannot be squared, and how many those are."""
    good: Bool[Array, " k"] = jnp.isfinite(squared_lengths(block))
    clear = lambda block: jnp.where(good[:, None], block, jnp.zeros_like(block))
    kept = jax.lax.cond(jnp.all(good), lambda block: block, clear, block)
    return kept, jnp.sum(~good, dtype=jnp.int32)


def _power_of_two_above(x: Float[Array, ""]) -> Float[Array, ""]:
    """A power of two near a number, so that dividing by it does not round."""
    x = x.astype(jnp.float64)
    exponent = jnp.round(jnp.log2(jnp.where(x > 0, x, 1.0)))
    return jnp.ldexp(jnp.ones_like(x), exponent.astype(jnp.int32))


def _format(sketch: Sketch) -> tuple:
    return (sketch.rows.shape, sketch.buffer.shape, sketch.rows.dtype, sketch.rule)
