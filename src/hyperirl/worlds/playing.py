"""A policy that plays: one compiled call a step, for all environments."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from hyperirl.policies import AbstractActor


class Player:
    """A policy with its noise for many steps, drawn in blocks.

    Only arrays are handed to the compiled call. To find out what else a policy is made
    of takes longer than to let it choose, and is done once.
    """

    def __init__(
        self,
        policy: AbstractActor,
        num_envs: int,
        block_size: int,
        *,
        key: PRNGKeyArray,
    ):
        """Gets ready to choose for `num_envs` environments at a time."""
        arrays, rest = eqx.partition(policy, eqx.is_array)
        self._arrays, tree = jax.tree.flatten(arrays)
        others, frame = jax.tree.flatten(rest)
        self._choose, self._draw = _programs(tree, frame, tuple(others))
        self._shape, self._key = (block_size, num_envs), key
        self._noise: Any = None  # Drawn for a block of steps at once.
        self._steps = 0

    def __call__(self, observations: Float[np.ndarray, "envs obs"]) -> np.ndarray:
        """The actions of the next step."""
        block, row = divmod(self._steps, self._shape[0])
        if row == 0:
            noise = self._draw(self._arrays, self._key, np.int32(block), self._shape)
            is_key = jnp.issubdtype(noise.dtype, jax.dtypes.prng_key)
            self._noise = noise if is_key else np.asarray(noise)
        self._steps += 1
        noise = self._noise[row]
        return np.asarray(self._choose(self._arrays, observations, noise))


@functools.lru_cache(maxsize=64)
def _programs(tree: Any, frame: Any, others: tuple) -> tuple[Callable, Callable]:
    """Compiled choosing and drawing, for all policies that differ only in arrays."""

    def whole(arrays) -> AbstractActor:
        rest = jax.tree.unflatten(frame, others)
        return eqx.combine(jax.tree.unflatten(tree, arrays), rest)

    @jax.jit
    def choose(arrays, observations, noise):
        return jax.vmap(whole(arrays).act)(observations, noise)

    @functools.partial(jax.jit, static_argnums=3)
    def draw(arrays, key, block, shape):
        policy = whole(arrays)
        draw_one = lambda key: policy.draw_noise(key=key)
        return jax.vmap(jax.vmap(draw_one))(jr.split(jr.fold_in(key, block), shape))

    return choose, draw


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """NumPy's chance from JAX's."""
    words = np.asarray(_words(key))
    return np.random.default_rng([int(word) for word in words])


@jax.jit
def _words(key: PRNGKeyArray) -> jax.Array:
    return jr.bits(key, (4,), np.uint32)
