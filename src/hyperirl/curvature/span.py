"""Solves with a few rows and a diagonal, in the span of the rows and outside it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_CHUNK = 16384  # Columns cast to float64 at a time.


def span_solve(
    rows: Float[Array, "k d"], g: Float[Array, " d"], damping: Float[Array, ""]
) -> tuple[Float[Array, " d"], Float[Array, " k"]]:
    """Solves `(Z^T Z + a I) v = g` for few rows Z; also the eigenvalues of `Z Z^T`.

    With `Z Z^T = U diag(s) U^T` and the orthonormal basis `Q = diag(s)^-1/2 U^T Z`,

        v = Q^T (c / (s + a)) + (g - Q^T c) / a,    c = Q g.

    Nothing cancels, unlike in the Woodbury form `(g - Z^T M Z g) / a`, so rows that
    are linearly dependent, zero, or large next to `a` do no harm. All arithmetic is
    float64; the part outside the span is made orthogonal to it a second time.
    """
    gram = _sum_over_columns(lambda z: z @ z.T, rows)
    values, vectors = jnp.linalg.eigh(gram)
    floor = 1e-14 * rows.shape[0] * jnp.maximum(values[-1], 0.0)
    inside = values > floor
    values = jnp.where(inside, values, 0.0)
    roots = jnp.where(inside, jax.lax.rsqrt(jnp.where(inside, values, 1.0)), 0.0)
    onto = lambda x: roots * (vectors.T @ _mv(rows, x))
    back = lambda c: _rmv(rows, vectors @ (roots * c))
    c = onto(g)
    outside = g - back(c)
    extra = onto(outside)
    c, outside = c + extra, outside - back(extra)
    return back(c / (values + damping)) + outside / damping, values


def _mv(rows: Float[Array, "k d"], x: Float[Array, " d"]) -> Float[Array, " k"]:
    return _sum_over_columns(lambda z, part: z @ part, rows, x)


def _rmv(rows: Float[Array, "k d"], y: Float[Array, " k"]) -> Float[Array, " d"]:
    """`Z^T y`, in float64 without a float64 copy of all of Z."""
    d = rows.shape[1]
    part = lambda start, size: _columns(rows, start, size).T @ y
    chunks, rest = divmod(d, _CHUNK)
    last = part(chunks * _CHUNK, rest)
    if chunks == 0:
        return last
    whole = jax.lax.map(lambda i: part(i * _CHUNK, _CHUNK), jnp.arange(chunks))
    return jnp.concatenate([whole.reshape(-1), last])


def _sum_over_columns(
    function, rows: Float[Array, "k d"], *vectors: Float[Array, " d"]
):
    """The sum of `function(columns, entries)` over chunks of columns, in float64."""
    d = rows.shape[1]

    def part(start, size):
        entries = [jax.lax.dynamic_slice_in_dim(x, start, size) for x in vectors]
        return function(_columns(rows, start, size), *entries)

    chunks, rest = divmod(d, _CHUNK)
    total = part(chunks * _CHUNK, rest)
    if chunks == 0:
        return total
    add = lambda i, total: total + part(i * _CHUNK, _CHUNK)
    return jax.lax.fori_loop(0, chunks, add, total)


def _columns(rows: Float[Array, "k d"], start, size: int) -> Float[Array, "k size"]:
    return jax.lax.dynamic_slice_in_dim(rows, start, size, 1).astype(jnp.float64)
