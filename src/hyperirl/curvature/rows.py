"""The matrix X of weighted score rows, as something that can be multiplied.

All solvers of `(X^T X + damping I) v = g` work on `AbstractRows`: `n` rows of `d`
columns that are never held whole. This file has the interface and the plain array;
`factored.py` has the rows of a multilayer perceptron, `autodiff.py` those of any
differentiable function.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, Int

_CHUNK = 4096  # Rows cast to float64 at a time.


class AbstractRows(eqx.Module):
    """The operator X with `num_rows` rows and `dim` columns."""

    @property
    @abc.abstractmethod
    def num_rows(self) -> int:
        """The number of rows, `n`."""

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The number of columns, `d`."""

    @property
    @abc.abstractmethod
    def dtype(self) -> jnp.dtype:
        """The floating-point type of the rows, and of all products with them."""

    @abc.abstractmethod
    def mv(self, v: Float[Array, " d"]) -> Float[Array, " n"]:
        """`X v`."""

    @abc.abstractmethod
    def rmv(self, y: Float[Array, " n"]) -> Float[Array, " d"]:
        """`X^T y`."""

    @abc.abstractmethod
    def gram(self) -> Float[Array, "n n"]:
        """`X X^T`."""

    @abc.abstractmethod
    def block(self, start: int | Int[Array, ""], size: int) -> Float[Array, "size d"]:
        """Rows `start` to `start + size` as an array; rows past the end are zero."""

    def block_and_gram(
        self, start: int | Int[Array, ""], size: int
    ) -> tuple[Float[Array, "size d"], Float[Array, "size size"]]:
        """A block of rows, and their Gram matrix."""
        block = self.block(start, size)
        return block, block @ block.T

    @abc.abstractmethod
    def squared_norms(self) -> Float[Array, " n"]:
        """The squared length of each row, in float64; not finite if it overflows."""

    @abc.abstractmethod
    def take(self, indices: Int[Array, " k"]) -> "AbstractRows":
        """The rows with these indices; one past the end is a row of zeros."""

    @abc.abstractmethod
    def scale(self, weights: Float[Array, " n"]) -> "AbstractRows":
        """Each row times its weight; weight 0 removes even a row that is not finite."""

    @abc.abstractmethod
    def astype(self, dtype: DTypeLike) -> "AbstractRows":
        """The same rows in another type, or as they are if they cannot be cast."""

    @abc.abstractmethod
    def column_squares(self) -> Float[Array, " d"]:
        """The diagonal of `X^T X`."""

    def usable(self) -> Bool[Array, " n"]:
        """Which rows are finite and small enough to be squared without overflow."""
        return jnp.isfinite(self.squared_norms())

    def squared_norm(self) -> Float[Array, ""]:
        """`trace(X^T X)`."""
        return jnp.sum(self.squared_norms())

    def normal_mv(self, v: Float[Array, " d"]) -> Float[Array, " d"]:
        """`X^T X v`."""
        return self.rmv(self.mv(v))

    def normal_mv64(self, v: Float[Array, " d"]) -> Float[Array, " d"]:
        """`X^T X v` in float64, with the rows cast a few thousand at a time."""
        v = v.astype(jnp.float64)
        size = max(min(_CHUNK, self.num_rows), 1)

        def add(i, total):
            chunk = self.take(i * size + jnp.arange(size))
            return total + chunk.astype(jnp.float64).normal_mv(v)

        return jax.lax.fori_loop(0, -(-self.num_rows // size), add, jnp.zeros_like(v))


class DenseRows(AbstractRows):
    """Rows held as an array; for small problems and for data from elsewhere."""

    array: Float[Array, "n d"]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.array.shape[0]

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self.array.shape[1]

    @property
    def dtype(self) -> jnp.dtype:
        """The type of the array."""
        return self.array.dtype

    def mv(self, v: Float[Array, " d"]) -> Float[Array, " n"]:
        """`X v`."""
        return self.array @ v

    def rmv(self, y: Float[Array, " n"]) -> Float[Array, " d"]:
        """`X^T y`."""
        return y @ self.array

    def gram(self) -> Float[Array, "n n"]:
        """`X X^T`."""
        return self.array @ self.array.T

    def block(self, start: int | Int[Array, ""], size: int) -> Float[Array, "size d"]:
        """Rows `start` to `start + size`; rows past the end are zero."""
        return self.take(start + jnp.arange(size)).array

    def squared_norms(self) -> Float[Array, " n"]:
        """The squared length of each row."""
        return squared_lengths(self.array)

    def column_squares(self) -> Float[Array, " d"]:
        """The diagonal of `X^T X`."""
        return jnp.sum(jnp.square(self.array), axis=0)

    def take(self, indices: Int[Array, " k"]) -> "DenseRows":
        """The rows with these indices; one past the end is a row of zeros."""
        return DenseRows(
            jnp.take(self.array, indices, axis=0, mode="fill", fill_value=0)
        )

    def scale(self, weights: Float[Array, " n"]) -> "DenseRows":
        """Each row times its weight."""
        return DenseRows(weigh(weights, self.array))

    def astype(self, dtype: DTypeLike) -> "DenseRows":
        """The same rows in another floating-point type."""
        return DenseRows(self.array.astype(dtype))


def as_rows(x: AbstractRows | Array | np.ndarray) -> AbstractRows:
    """Rows from a plain array; rows stay what they are."""
    if isinstance(x, AbstractRows):
        return x
    if x.ndim != 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(
            f"Expected rows as a floating-point array of shape (rows, dim), got "
            f"{x.dtype} of shape {x.shape}. One score is one row: a single row is "
            "`x[None]`, episodes and steps are `x.reshape(-1, dim)`."
        )
    return DenseRows(jnp.asarray(x))


def weigh(weights: Float[Array, " n"], array: Float[Array, "n k"]):
    """`diag(weights) array`, where weight 0 makes 0 of anything."""
    kept = (weights != 0)[:, None]
    return jnp.where(kept, weights[:, None] * array, jnp.zeros_like(array))


def squared_lengths(array: Float[Array, "n k"]) -> Float[Array, " n"]:
    """The squared length of each row, in float64.

    The sum is a product with ones: many times faster on CPU than a reduction.
    """
    ones = jnp.ones((array.shape[1],), array.dtype)
    return (jnp.square(array) @ ones).astype(jnp.float64)
