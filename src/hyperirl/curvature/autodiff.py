"""Score rows of any differentiable function, by forward and reverse products."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, DTypeLike, Float, Int, PyTree

from hyperirl.curvature.rows import AbstractRows, DenseRows, weigh

_BLOCK = 256  # Rows held at a time.


class AutodiffRows(AbstractRows):
    """`weights * Jacobian` of a function from flat parameters to one value a row.

    With `inputs`, every leaf of which has one entry a row on its first axis, the
    function is called as `function(parameters, inputs)`, and value `i` may depend on
    entry `i` only: then a block of rows costs only those rows. Without inputs it is
    called as `function(parameters)`, and a block costs a whole reverse pass a row.

    Rows of weight 0 are cleared from every product, but a derivative that is not finite
    there still spreads through a reverse pass: mask the inputs of such steps.
    """

    function: Callable = eqx.field(static=True)
    parameters: Float[Array, " d"]
    weights: Float[Array, " n"]
    inputs: PyTree = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.weights.shape[0]

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.parameters.shape[0]

    @property
    def dtype(self) -> jnp.dtype:
        """The type of the parameters."""
        return self.parameters.dtype

    def _values(self, parameters: Float[Array, " d"]) -> Float[Array, " n"]:
        if self.inputs is None:
            return self.function(parameters)
        return self.function(parameters, self.inputs)

    def mv(self, v: Float[Array, " d"]) -> Float[Array, " n"]:
        """`X v`, one forward product."""
        _, tangents = jax.jvp(self._values, (self.parameters,), (v,))
        return weigh(self.weights, tangents[:, None])[:, 0]

    def rmv(self, y: Float[Array, " n"]) -> Float[Array, " d"]:
        """`X^T y`, one reverse product."""
        _, pull = jax.vjp(self._values, self.parameters)
        (product,) = pull(weigh(self.weights, y[:, None])[:, 0])
        return product

    def gram(self) -> Float[Array, "n n"]:
        """`X X^T`, from all rows at once."""
        return DenseRows(self.block(0, self.num_rows)).gram()

    def block(self, start: int | Int[Array, ""], size: int) -> Float[Array, "size d"]:
        """Rows `start` to `start + size` as an array; rows past the end are zero."""
        indices = start + jnp.arange(size)
        weights = jnp.take(self.weights, indices, mode="fill", fill_value=0)
        if self.inputs is None:
            _, pull = jax.vjp(self._values, self.parameters)
            one_hot = (indices[:, None] == jnp.arange(self.num_rows)[None, :]).astype(
                self.dtype
            )
            (scores,) = jax.vmap(pull)(one_hot)
            return weigh(weights, scores)

        def score(i):
            pick = lambda x: jnp.take(x, i[None], axis=0, mode="clip")
            inputs = jax.tree.map(pick, self.inputs)
            return jax.grad(lambda p: self.function(p, inputs)[0])(self.parameters)

        return weigh(weights, jax.vmap(score)(indices))

    def _map_blocks(self, function) -> Float[Array, "blocks k"]:
        """`function` of every block of rows; never more than one block at a time."""
        size = max(min(_BLOCK, self.num_rows), 1)
        starts = jnp.arange(-(-self.num_rows // size)) * size
        return jax.lax.map(lambda start: function(self.block(start, size)), starts)

    def squared_norms(self) -> Float[Array, " n"]:
        """The squared length of each row."""
        norms = self._map_blocks(lambda block: DenseRows(block).squared_norms())
        return norms.reshape(-1)[: self.num_rows]

    def column_squares(self) -> Float[Array, " d"]:
        """The diagonal of `X^T X`."""
        squares = self._map_blocks(lambda block: DenseRows(block).column_squares())
        return jnp.sum(squares, axis=0)

    def squared_norm(self) -> Float[Array, ""]:
        """`trace(X^T X)`: exact with inputs, else estimated by 32 reverse products.

        The estimate is Hutchinson's, with fixed random signs; its standard error is at
        most a quarter of the value, and far less when no direction dominates.
        """
        if self.inputs is not None or self.num_rows <= 32:
            return jnp.sum(self.squared_norms())
        signs = jr.rademacher(jr.key(0), (32, self.num_rows), self.dtype)
        products = jax.lax.map(self.rmv, signs).astype(jnp.float64)
        return jnp.sum(jnp.square(products)) / 32

    def take(self, indices: Int[Array, " k"]) -> "AutodiffRows":
        """The rows with these indices; one past the end is a row of zeros."""
        weights = jnp.take(self.weights, indices, mode="fill", fill_value=0)
        pick = lambda x: jnp.take(x, indices, axis=0, mode="clip")
        if self.inputs is None:
            function, inputs = functools.partial(_entries, self.function), indices
        else:
            function, inputs = self.function, jax.tree.map(pick, self.inputs)
        return AutodiffRows(function, self.parameters, weights, inputs)

    def scale(self, weights: Float[Array, " n"]) -> "AutodiffRows":
        """Each row times its weight."""
        weights = weigh(weights, self.weights[:, None])[:, 0]
        return AutodiffRows(self.function, self.parameters, weights, self.inputs)

    def astype(self, dtype: DTypeLike) -> "AutodiffRows":
        """The same rows: a function cannot be cast, so `dtype` has no effect."""
        return self

    def normal_mv64(self, v: Float[Array, " d"]) -> Float[Array, " d"]:
        """`X^T X v` in the type of the parameters, returned as float64."""
        return self.normal_mv(v.astype(self.dtype)).astype(jnp.float64)

    def usable(self) -> Bool[Array, " n"]:
        """Which rows have finite values and weights; derivatives are not looked at."""
        values = self._values(self.parameters)
        return jnp.isfinite(weigh(self.weights, values[:, None])[:, 0])


def _entries(function, parameters, indices) -> Float[Array, " k"]:
    return jnp.take(function(parameters), indices, mode="clip")
