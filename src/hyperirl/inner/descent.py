"""Adam on the trained parameters of a module, with a learning rate given at each step.

The rate is an argument and not part of the optimizer, so that it can be an array that
changes without compiling again.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float

from hyperirl.networks import partition

_ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-6)


def moments(module: Any) -> optax.OptState:
    """Adam's memory for the trained parameters of a module, before the first step."""
    return _ADAM.init(partition(module)[0])


def descend(
    loss: Callable[[Any], Float[Array, ""]],
    module: Any,
    moments: optax.OptState,
    learning_rate: Float[Array, ""],
) -> tuple[Any, optax.OptState]:
    """One step of Adam down the gradient of `loss`."""
    module, moments, _ = descend_with(
        lambda module: (loss(module), None), module, moments, learning_rate
    )
    return module, moments


def descend_with(
    loss: Callable[[Any], tuple[Float[Array, ""], Any]],
    module: Any,
    moments: optax.OptState,
    learning_rate: Float[Array, ""],
) -> tuple[Any, optax.OptState, Any]:
    """The same for a loss that also returns something else, which is passed on."""
    params, rest = partition(module)
    at = lambda params: loss(eqx.combine(params, rest))
    grads, other = jax.grad(at, has_aux=True)(params)
    with jax.numpy_dtype_promotion("standard"):  # Adam mixes float and int.
        direction, moments = _ADAM.update(grads, moments)
    params = jax.tree.map(
        lambda p, d: p - learning_rate.astype(p.dtype) * d, params, direction
    )
    return eqx.combine(params, rest), moments, other
