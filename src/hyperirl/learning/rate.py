"""The learning rate of the reward, and an optimizer that is told it at every step.

Both are arrays to the compiled step: another rate or a longer run is the same program.
"""

import functools
import inspect
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from hyperirl.inner.solver import hyperparameter


class Rate(eqx.Module):
    """Falls along a cosine from `first` to `last_share` of it, over a run."""

    first: Float[Array, ""] = hyperparameter(1e-3)
    last_share: Float[Array, ""] = hyperparameter(1.0)

    def __call__(self, done: Float[Array, ""]) -> Float[Array, ""]:
        """The rate when this share of the run is done."""
        left = 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(done, 1.0)))
        return self.first * (self.last_share + (1 - self.last_share) * left)


@functools.cache  # The same object again, so that a second run compiles nothing.
def adjustable_optimizer(name: str, clip: float) -> optax.GradientTransformation:
    """Clipping by norm, then the named optimizer of Optax, at any rate.

    The rate is part of the optimizer's state; `with_rate` sets it.
    """
    make: Any = getattr(optax, name, None)
    if make is None:
        raise ValueError(f"Optax has no optimizer {name!r}; try adam, adamw or sgd.")
    try:
        others = [p for p in inspect.signature(make).parameters if p != "learning_rate"]
        adjustable = optax.inject_hyperparams(
            make, static_args=others, hyperparam_dtype=jnp.float32
        )
        optimizer: Any = adjustable(learning_rate=1.0)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"optax.{name} cannot be made from a learning rate alone ({error}); try "
            "adam, adamw or sgd."
        ) from error
    if math.isinf(clip):
        return optimizer
    return optax.chain(optax.clip_by_global_norm(clip), optimizer)


def with_rate(moments: optax.OptState, rate: Float[Array, ""]) -> optax.OptState:
    """The state of an adjustable optimizer, for a step at another rate."""
    return optax.tree_utils.tree_set(moments, learning_rate=rate)
