"""Oracles compute in `float64`, whatever they are given."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

T = TypeVar("T")


def float64(tree: T) -> T:
    """The same pytree with its floating-point arrays in double precision."""
    cast = lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf
    return jax.tree.map(cast, tree)
