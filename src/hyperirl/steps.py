"""Functions of one step, called with one step or with many.

A step has an observation, which is a vector, and perhaps an action: the number of a
choice, or a vector. Axes before those are a batch. What is called from Python is
compiled; what is part of another program is left for that one to compile.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, PRNGKeyArray

from hyperirl.programs import compiled, is_traced
from hyperirl.spaces import ActionSpace, Discrete

Numbers = Array | np.ndarray | np.generic | Sequence | float | int
"""Anything that can be made into an array."""


@runtime_checkable
class Reader(Protocol):
    """What reads steps, and what is known of them; None: not known."""

    @property
    def observation_size(self) -> int | None:
        """How many numbers an observation has."""
        ...

    @property
    def action_space(self) -> ActionSpace | None:
        """What an action is."""
        ...


def each_step(
    what: str,
    function: Callable,
    module: Any,
    observation: Numbers,
    action: Numbers | None = None,
    *,
    key: PRNGKeyArray | None = None,
) -> Any:
    """`function(module, observation, action, key)` of every step.

    What is None is left out. Numbers that are not JAX arrays take the type of the
    module's own.

    Args:
        what: The module in one word, for errors.
        function: Of one step. Each new one is compiled, so give one that stays.
        module: What reads the steps.
        observation: One or many.
        action: As many.
        key: Split if there are many.
    """
    observation = _as_observation(what, module, observation)
    batch = observation.shape[:-1]
    arguments = [observation]
    if action is not None:
        arguments.append(_as_action(what, module, action, observation.shape))
    if key is not None:
        arguments.append(jr.split(key, batch) if batch else key)
    return _run(function, module, arguments)


@compiled
def _run(function: Callable, module: Any, arguments: list[Array]) -> Any:
    one = lambda *arguments: function(module, *arguments)
    for _ in range(arguments[0].ndim - 1):
        one = jax.vmap(one)
    return one(*arguments)


def _as_observation(what: str, module: Reader, observation: Numbers) -> Array:
    size = module.observation_size
    array = _as_floats(_as_array(what, "observations", module, observation), module)
    if array.ndim == 0 or size not in (None, array.shape[-1]):
        wanted = "as vectors" if size is None else f"of {size} numbers"
        raise ValueError(
            f"This {what} reads observations {wanted}, got shape {array.shape}."
        )
    return array


def _as_action(
    what: str, module: Reader, action: Numbers, beside: tuple[int, ...]
) -> Array:
    """The action, or one for each of the observations of shape `beside`."""
    space, batch = module.action_space, beside[:-1]
    array = _as_array(what, "actions", module, action)
    if space is None:
        wanted = f"{batch}, or that and the size of a vector,"
        fits = array.shape in (batch, (*batch, *array.shape[-1:]))
    else:
        wanted = batch if isinstance(space, Discrete) else (*batch, space.size)
        fits = array.shape == wanted
    if not fits:
        raise ValueError(
            f"This {what} reads actions of shape {wanted} beside observations of shape "
            f"{beside}, got shape {array.shape}."
        )
    if space is None:
        return array
    if isinstance(space, Discrete):
        _check_known(what, array.dtype, action, space)
        return array if isinstance(array, Tracer) else array.astype(jnp.int32)
    return _as_floats(array, module)


def _check_known(what: str, dtype: np.dtype, action: Numbers, space: Discrete) -> None:
    """Refuses what is no choice, as far as it is known while a program is compiled."""
    wanted = f"This {what} reads actions as integers from 0 to {space.num_actions - 1}"
    if not jnp.issubdtype(dtype, jnp.integer):
        raise ValueError(f"{wanted}, got {dtype}.")
    if is_traced(action):
        return
    numbers = np.asarray(action)
    wrong = numbers[(numbers < 0) | (numbers >= space.num_actions)]
    if wrong.size:
        raise ValueError(f"{wanted}, got {wrong[0]}.")


def _as_array(what: str, name: str, module: Reader, numbers: Numbers) -> Array:
    if isinstance(numbers, jax.Array):
        return numbers
    try:
        array = jnp.asarray(numbers)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"This {what} reads {name} as arrays of numbers, got {str(numbers)[:60]}."
        ) from error
    floats = jnp.issubdtype(array.dtype, jnp.floating)
    return array.astype(dtype_of(module)) if floats else array


def _as_floats(array: Array, module: Reader) -> Array:
    floats = jnp.issubdtype(array.dtype, jnp.floating)
    return array if floats else array.astype(dtype_of(module))


def dtype_of(module: Any) -> np.dtype:
    """The type of a module's numbers; `float32` if it has none."""
    arrays = jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array))
    return arrays[0].dtype if arrays else jnp.dtype(jnp.float32)
