import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import equinox.internal as eqxi
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey():
    """Keys from a fixed seed: every test sees the same stream on every run."""
    return eqxi.GetKey(seed=0)
