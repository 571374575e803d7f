"""Score rows of a multilayer perceptron, held as two factors a layer.

The score of one step with respect to a weight matrix is the outer product of the delta
that arrives at the layer and the activation that entered it. Keeping the two instead of
their product turns every operation on the rows into matrix products:

    X v      = sum_layers rowsum((A V^T) * D)
    X^T y    = (D * y)^T A, layer by layer
    X X^T    = sum_layers (A A^T) * (D D^T)

with A the activations, D the deltas and V the part of v that belongs to the layer, of
shape (out, in) and flattened row by row. A bias is a weight whose activation is 1; it
comes after the others.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float, Int

from hyperirl.curvature.rows import (
    AbstractRows,
    squared_lengths,
)

_CHUNK = 2048  # Rows whose factors fit the cache.


class Factor(eqx.Module):
    """A layer: its part of row `t` is `outer(deltas, activations)`.

    With a bias, `deltas` itself follows. Without activations the block is any free
    parameter, and `deltas` is all of its part.
    """

    activations: Float[Array, "n i"] | None
    deltas: Float[Array, "n o"]
    bias: bool = eqx.field(static=True, default=False)

    @property
    def num_weights(self) -> int:
        """The number of parameters without the bias."""
        inputs = 1 if self.activations is None else self.activations.shape[1]
        return inputs * self.deltas.shape[1]

    @property
    def size(self) -> int:
        """The number of parameters in the block."""
        return self.num_weights + (self.deltas.shape[1] if self.bias else 0)

    @property
    def narrow(self) -> bool:
        """Whether activations are the thinner factor: what is left to multiply by."""
        inputs = 1 if self.activations is None else self.activations.shape[1]
        return inputs < self.deltas.shape[1]

    def mv(self, v: Float[Array, " k"]) -> Float[Array, " n"]:
        """The part of `X v`, before the weights of the rows."""
        if self.activations is None:
            return self.deltas @ v
        weight = v[: self.num_weights].reshape(self.deltas.shape[1], -1)
        # The sum is a product with ones: many times faster on CPU than a reduction.
        if self.narrow:
            product = (self.deltas @ weight) * self.activations
        else:
            product = (self.activations @ weight.T) * self.deltas
        total = product @ jnp.ones_like(product[0])
        return total + self.deltas @ v[self.num_weights :] if self.bias else total

    def rmv(self, y: Float[Array, " n"]) -> Float[Array, " k"]:
        """The part of `X^T y`, for `y` times the weights of the rows."""
        if self.activations is None:
            return y @ self.deltas
        if self.narrow:
            product = self.deltas.T @ (self.activations * y[:, None])
        else:
            product = (self.deltas * y[:, None]).T @ self.activations
        flat = product.reshape(-1)
        return jnp.concatenate([flat, y @ self.deltas]) if self.bias else flat

    def gram(self) -> Float[Array, "n n"]:
        """The part of `X X^T`, before the weights of the rows."""
        product = self.deltas @ self.deltas.T
        if self.activations is None:
            return product
        inputs = self.activations @ self.activations.T
        return product * (inputs + 1 if self.bias else inputs)

    def rows(self, weights: Float[Array, " n"]) -> Float[Array, "n k"]:
        """The part of the rows themselves."""
        deltas = weights[:, None] * self.deltas
        if self.activations is None:
            return deltas
        outer = deltas[:, :, None] * self.activations[:, None, :]
        outer = outer.reshape(-1, self.num_weights)
        return jnp.concatenate([outer, deltas], axis=1) if self.bias else outer

    def squared_norms(self) -> Float[Array, " n"]:
        """`|delta|^2 (|activation|^2 + 1 with a bias)` of each row, in float64."""
        norms = squared_lengths(self.deltas)
        if self.activations is None:
            return norms
        return norms * (squared_lengths(self.activations) + float(self.bias))


class FactoredRows(AbstractRows):
    """Rows `weight_t * score_t`, with the score given by its factors.

    Rows of weight 0 contribute nothing, whatever their factors hold.
    """

    factors: tuple[Factor, ...]
    weights: Float[Array, " n"]

    def __init__(self, factors: Sequence[Factor], weights: Float[Array, " n"]):
        """Checks that the factors fit together and clears the rows of weight 0.

        Args:
            factors: One a block of parameters, in the order of the flat parameters.
            weights: One a row: `sqrt(alpha gamma^t mask / N)`.
        """
        for i, factor in enumerate(factors):
            for array in (factor.activations, factor.deltas):
                if array is not None and array.shape[0] != weights.shape[0]:
                    raise ValueError(
                        f"Factor {i} has {array.shape[0]} rows and `weights` has "
                        f"{weights.shape[0]}. Flatten episodes and steps the same way "
                        "in both: one row a step."
                    )
                if array is not None and array.dtype != weights.dtype:
                    raise ValueError(
                        f"Factor {i} is {array.dtype} and `weights` is "
                        f"{weights.dtype}. Cast one of them; the rows have one type."
                    )
        self.factors = tuple(_clear(factor, weights != 0) for factor in factors)
        self.weights = weights

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.weights.shape[0]

    @property
    def dim(self) -> int:
        """The number of parameters over all blocks."""
        return sum(factor.size for factor in self.factors)

    @property
    def dtype(self) -> jnp.dtype:
        """The type of the factors."""
        return self.weights.dtype

    def mv(self, v: Float[Array, " d"]) -> Float[Array, " n"]:
        """`X v`."""
        total = jnp.zeros_like(self.weights)
        start = 0
        for factor in self.factors:
            total = total + factor.mv(v[start : start + factor.size])
            start += factor.size
        return self.weights * total

    def rmv(self, y: Float[Array, " n"]) -> Float[Array, " d"]:
        """`X^T y`."""
        y = self.weights * y
        return jnp.concatenate([factor.rmv(y) for factor in self.factors])

    def gram(self) -> Float[Array, "n n"]:
        """`X X^T`, at the cost of the factors and not of `dim`."""
        total = jnp.zeros((self.num_rows, self.num_rows), self.dtype)
        for factor in self.factors:
            total = total + factor.gram()
        return self.weights[:, None] * total * self.weights[None, :]

    def block(self, start: int | Int[Array, ""], size: int) -> Float[Array, "size d"]:
        """Rows `start` to `start + size` as an array; rows past the end are zero."""
        part = self.take(start + jnp.arange(size))
        columns = [factor.rows(part.weights) for factor in part.factors]
        return jnp.concatenate(columns, axis=1)

    def block_and_gram(
        self, start: int | Int[Array, ""], size: int
    ) -> tuple[Float[Array, "size d"], Float[Array, "size size"]]:
        """A block of rows, and their Gram matrix at the cost of the factors."""
        part = self.take(start + jnp.arange(size))
        return part.block(0, size), part.gram()

    def squared_norms(self) -> Float[Array, " n"]:
        """The squared length of each row."""
        squares = jnp.square(self.weights.astype(jnp.float64))
        return sum(
            (squares * factor.squared_norms() for factor in self.factors),
            jnp.zeros_like(squares),
        )

    def column_squares(self) -> Float[Array, " d"]:
        """The diagonal of `X^T X`."""
        squares = _map(jnp.square, self.factors)
        return FactoredRows(squares, self.weights).rmv(self.weights)

    def take(self, indices: Int[Array, " k"]) -> "FactoredRows":
        """The rows with these indices; one past the end is a row of zeros."""
        pick = lambda x: jnp.take(x, indices, axis=0, mode="fill", fill_value=0)
        return FactoredRows(_map(pick, self.factors), pick(self.weights))

    def scale(self, weights: Float[Array, " n"]) -> "FactoredRows":
        """Each row times its weight."""
        return FactoredRows(self.factors, weights * self.weights)

    def astype(self, dtype: DTypeLike) -> "FactoredRows":
        """The same rows in another floating-point type."""
        cast = lambda x: x.astype(dtype)
        return FactoredRows(_map(cast, self.factors), cast(self.weights))

    def normal_mv(self, v: Float[Array, " d"]) -> Float[Array, " d"]:
        """`X^T X v`, a few thousand rows at a time so that they stay in cache."""
        both = lambda rows: rows.rmv(rows.mv(v))
        size = _chunk_size(self.num_rows)
        chunks, rest = divmod(self.num_rows, size)
        if chunks <= 1 and rest == 0:
            return both(self)

        def part(start, size):
            cut = lambda x: jax.lax.dynamic_slice_in_dim(x, start, size)
            return jax.tree.map(cut, self)

        add = lambda i, total: total + both(part(i * size, size))
        total = jax.lax.fori_loop(0, chunks, add, jnp.zeros_like(v))
        return total + both(part(chunks * size, rest)) if rest else total


def _chunk_size(num_rows: int) -> int:
    """About `_CHUNK` rows, and no remainder (it would compile twice) if it can be."""
    fewest = max(-(-num_rows // _CHUNK), 1)
    for chunks in range(fewest, 2 * fewest):
        if num_rows % chunks == 0:
            return max(num_rows // chunks, 1)
    return min(_CHUNK, num_rows)


def _map(function, factors: tuple[Factor, ...]) -> list[Factor]:
    return [jax.tree.map(function, factor) for factor in factors]


def _clear(factor: Factor, kept: Bool[Array, " n"]) -> Factor:
    """Zeros in the rows that are not kept, so that nothing in them can spread."""
    clear = lambda x: jnp.where(kept[:, None], x, jnp.zeros_like(x))
    return _map(clear, (factor,))[0]
