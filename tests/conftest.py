import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import os
import pathlib
import tempfile
import time

import equinox.internal as eqxi
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_configure(config):
    """Most of the time goes into compiling: once, and without optimizations.

    Without the emitters of fused loops it takes less than half of the time. The
    processes of one run, and those they start, share compiled programs in a folder of
    their own; the user's is neither read nor written.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:  # Its workers inherit the environment.
        folder = tempfile.TemporaryDirectory(prefix="hyperirl-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
    folder = os.environ["JAX_COMPILATION_CACHE_DIR"]
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    jax.config.update("jax_disable_most_optimizations", True)


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that the workers end together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def getkey():
    """Keys from a fixed seed: every test sees the same stream on every run."""
    return eqxi.GetKey(seed=0)


@pytest.fixture(autouse=True)
def forget_compiled_programs():
    """Thousands of programs in one process exhaust the maps a process may have."""
    began = time.monotonic()
    yield
    if time.monotonic() - began < 0.5:  # It has not compiled much.
        return
    maps = pathlib.Path("/proc/self/maps")
    if not maps.exists() or maps.read_text().count("\n") > 20_000:  # Of some 65,000.
        jax.clear_caches()


@pytest.fixture(scope="module")
def optimized():
    """For what runs long, or is about the code that is generated."""
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()
    yield
    jax.config.update("jax_disable_most_optimizations", True)
    jax.clear_caches()
