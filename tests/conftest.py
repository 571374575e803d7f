import hyperirl  # noqa: F401  Sets JAX up before anything else imports it.

import equinox.internal as eqxi  # isort: split
import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey():
    """Keys from a fixed seed: every test sees the same stream on every run."""
    return eqxi.GetKey(seed=0)
