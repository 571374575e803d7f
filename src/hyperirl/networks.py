"""The multilayer perceptron behind policies, rewards and critics.

It can say what a gradient is made of: the gradient of `delta . f(x)` with respect to a
layer's weight is the outer product of the delta that arrives at the layer and the
activation that entered it. Curvature code works on these two factors and never on the
gradient itself.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, PRNGKeyArray, PyTree

from hyperirl.describing import Fields, describe_array


class AbstractData(eqx.Module):
    """A module whose numbers are data: they are never trained."""


class Normalizer(AbstractData):
    """Shifts and scales inputs."""

    mean: Float[Array, " size"]
    scale: Float[Array, " size"]

    def __call__(self, x: Float[Array, " size"]) -> Float[Array, " size"]:
        """`(x - mean) / scale`."""
        return (x - self.mean) / self.scale

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        parts = {"mean": self.mean, "scale": self.scale}
        return {name: describe_array(array) for name, array in parts.items()}

    @classmethod
    def rebuild(cls, fields: Fields) -> "Normalizer":
        """From plain values."""
        mean, scale = fields.array("mean", 1), fields.array("scale", 1)
        if mean.shape != scale.shape:
            raise ValueError("the normalizer has shapes that do not fit")
        return cls(mean, scale)


@jax.jit
def pooled(first: Normalizer, second: Normalizer) -> Normalizer:
    """Mean and scale of two sets of inputs together, each counting half."""
    mean, apart = (first.mean + second.mean) / 2, (first.mean - second.mean) / 2
    within = (first.scale**2 + second.scale**2) / 2
    return Normalizer(mean, jnp.sqrt(within + apart**2))


@jax.jit  # One program: outside of others it would be a dozen small ones.
def masked_normalizer(
    inputs: Float[Array, "episodes steps size"], mask: Bool[Array, "episodes steps"]
) -> Normalizer:
    """Mean and scale of the inputs where the mask is true.

    A component that never changes, up to rounding, keeps its size: its scale is 1.
    """
    # The longest type there is: in `float32`, sums over many steps lose their digits.
    wide = jax.dtypes.canonicalize_dtype(jnp.float64)
    mask = mask[:, :, None]
    x = jnp.where(mask, inputs, 0.0).astype(wide)
    count = jnp.sum(mask, dtype=wide)
    mean = jnp.sum(x, axis=(0, 1)) / count
    deviations = jnp.where(mask, x - mean[None, None, :], 0.0)
    scale = jnp.sqrt(jnp.sum(deviations**2, axis=(0, 1)) / count)
    scale = jnp.where(scale > 1e-6 * jnp.abs(mean), scale, 1.0)
    return Normalizer(mean.astype(inputs.dtype), scale.astype(inputs.dtype))


def trainable(module: PyTree) -> PyTree:
    """A filter, in Equinox's sense: floating-point arrays that are no data."""
    frozen = lambda node: isinstance(node, AbstractData)
    keep = lambda node: not frozen(node) and eqx.is_inexact_array(node)
    return jax.tree.map(keep, module, is_leaf=frozen)


def partition(module: PyTree) -> tuple[PyTree, PyTree]:
    """The trained parameters of a module, and the rest; `eqx.combine` joins them."""
    return eqx.partition(module, trainable(module))


class MLP(eqx.Module):
    """Linear layers with an activation between them; acts on one input vector."""

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        key: PRNGKeyArray,
        output_gain: float = 1.0,
        use_bias: bool = True,
        activation: Callable = jnp.tanh,
        dtype: DTypeLike = jnp.float32,
    ):
        """Orthogonal weights with gain sqrt(2), `output_gain` in the last layer.

        Args:
            sizes: Input size, hidden sizes and output size.
            key: For the initial weights; biases start at zero.
            output_gain: Scale of the last layer. Small: nearly constant at first.
            use_bias: Whether layers have biases.
            activation: Between the layers, elementwise.
            dtype: Of the parameters.
        """
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(
                "`sizes` are the input size, any hidden sizes and the output size, all "
                f"positive; got {tuple(sizes)}."
            )
        gains = [math.sqrt(2)] * (len(sizes) - 2) + [output_gain]
        weights = _orthogonal_weights(key, tuple(sizes), jnp.dtype(dtype))
        self.layers = tuple(
            _linear(gain * weight, use_bias)
            for gain, weight in zip(gains, weights, strict=True)
        )
        self.activation = activation

    @property
    def input_size(self) -> int:
        """The length of an input."""
        return self.layers[0].weight.shape[1]

    @property
    def output_size(self) -> int:
        """The length of an output."""
        return self.layers[-1].weight.shape[0]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The output for one input."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)

    def factors(
        self, x: Float[Array, " in"], delta: Float[Array, " out"]
    ) -> list[tuple[Float[Array, " _"], Float[Array, " _"]]]:
        """The (activation, delta) pair of each layer, for the gradient of `delta . f`.

        With them, the gradient with respect to a layer's weight is
        `outer(delta, activation)`, and with respect to its bias `delta`.
        """
        activations, slopes = [x], []
        for layer in self.layers[:-1]:
            x, slope = _values_and_slopes(self.activation, layer(x))
            activations.append(x)
            slopes.append(slope)
        deltas = [delta]
        for layer, slope in zip(self.layers[:0:-1], slopes[::-1], strict=True):
            delta = slope * (layer.weight.T @ delta)
            deltas.append(delta)
        return list(zip(activations, deltas[::-1], strict=True))

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        if self.activation is not jnp.tanh:
            name = getattr(self.activation, "__name__", repr(self.activation))
            raise ValueError(
                f"The network has the activation `{name}`, and only `jax.numpy.tanh` "
                "is known when it is loaded again; use that, or save the arrays with "
                "`hyperirl.runs.save_arrays`."
            )
        weights = [layer.weight for layer in self.layers]
        return {
            "sizes": [self.input_size, *(weight.shape[0] for weight in weights)],
            "use_bias": self.layers[0].bias is not None,
            "dtype": str(weights[0].dtype),
            "activation": "tanh",
        }

    @classmethod
    def rebuild(cls, fields: Fields) -> "MLP":
        """From plain values."""
        fields.choice("activation", "tanh")
        sizes, use_bias = fields.sizes("sizes"), fields.take("use_bias", bool)
        return cls(sizes, key=jr.key(0), use_bias=use_bias, dtype=fields.dtype())


def linear_map(weight: Float[Array, "out in"]) -> MLP:
    """The network `x -> weight @ x`, without hidden layers or biases."""
    size_out, size_in = weight.shape
    draw = lambda key: MLP((size_in, size_out), key=key, use_bias=False)
    network = eqx.filter_eval_shape(draw, jr.key(0))  # Shapes only: draws nothing.
    return eqx.tree_at(lambda network: network.layers[0].weight, network, weight)


def _linear(weight: Float[Array, "out in"], use_bias: bool) -> eqx.nn.Linear:
    """A layer with this weight, and a bias of zero."""
    size_out, size_in = weight.shape
    draw = lambda key: eqx.nn.Linear(size_in, size_out, use_bias=use_bias, key=key)
    layer = eqx.filter_eval_shape(draw, jr.key(0))
    layer = eqx.tree_at(lambda layer: layer.weight, layer, weight)
    if use_bias:
        bias = jnp.asarray(np.zeros(size_out, weight.dtype))
        layer = eqx.tree_at(lambda layer: layer.bias, layer, bias)
    return layer


# One program and one draw: with one each per layer they take seconds to compile.
@functools.partial(jax.jit, static_argnums=(1, 2))
def _orthogonal_weights(key, sizes, dtype) -> list[Float[Array, "out in"]]:
    """A uniformly random orthogonal (or semi-orthogonal) matrix for each layer."""
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    ends = np.cumsum([size_out * size_in for size_out, size_in in shapes])
    draws = jnp.split(jr.normal(key, (int(ends[-1]),), dtype), ends[:-1])

    def orthogonal(draw, shape):
        q, r = jnp.linalg.qr(draw.reshape(max(shape), min(shape)))
        q = q * jnp.sign(jnp.diagonal(r))[None, :]  # Else `q` is not uniform.
        return q if shape[0] >= shape[1] else q.T

    return [orthogonal(draw, shape) for draw, shape in zip(draws, shapes, strict=True)]


def _values_and_slopes(function: Callable, x: Float[Array, " n"]):
    """An elementwise function's values and derivatives."""
    return jax.jvp(function, (x,), (jnp.ones_like(x),))
