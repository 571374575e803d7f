"""Learn reward functions from demonstrations."""

from hyperirl import _jax as _jax  # Before anything imports JAX.
