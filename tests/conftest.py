import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import equinox.internal as eqxi
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Tests neither read nor leave compiled programs in the user's cache.
jax.config.update("jax_enable_compilation_cache", False)


@pytest.fixture
def getkey():
    """Keys from a fixed seed: every test sees the same stream on every run."""
    return eqxi.GetKey(seed=0)


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Thousands of programs in one process exhaust the maps a process may have."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def quick_compilation():
    """For programs that run in milliseconds: most of the time goes into compiling."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
