"""JAX computes right here, and hyperirl says so when it does not."""

import functools
import importlib.metadata
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from hyperirl import _jax

pytestmark = pytest.mark.usefixtures("optimized")


def test_canary_products_with_zeros_are_zero():
    # As users compile it; other tests leave these emitters out.
    @functools.partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": True})
    def weighted_row_sums(a, x):
        return ((a @ jnp.zeros((128, 64), jnp.float32)) * x).sum(1)

    a_key, x_key = jr.split(jr.key(0))
    a = jr.normal(a_key, (1000, 128), jnp.float32)
    x = jr.normal(x_key, (1000, 64), jnp.float32)
    assert (weighted_row_sums(a, x) == 0).all(), (
        f"jaxlib {importlib.metadata.version('jaxlib')} miscompiles products with "
        f"zeros on this machine (XLA_FLAGS={os.environ.get('XLA_FLAGS', '')!r}): "
        "conjugate gradients would return garbage. Install jax==0.10.1; see "
        "docs/jax.md."
    )


@pytest.mark.parametrize(
    "version, bad",
    [("0.10.1", False), ("0.9.2", False), ("0.10.2", True), ("0.12.0.1", True)],
)
def test_the_bad_releases_are_known(version, bad):
    assert _jax._miscompiles(version) is bad


def test_a_bad_release_is_worked_around_before_jax_starts(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.10.2")
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv("XLA_FLAGS", "--xla_keep_me=1")
    _jax._choose_backend_flags()
    assert os.environ["XLA_FLAGS"] == f"--xla_keep_me=1 {_jax._WORKAROUND}"


def test_a_bad_release_that_already_started_is_warned_about(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.10.2")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with pytest.warns(RuntimeWarning, match=r"install jax==0\.10\.1"):
        _jax._choose_backend_flags()


_CHOICES = """
import hyperirl, jax, os
print(jax.config.jax_enable_x64)
print(os.environ["OPENBLAS_THREAD_TIMEOUT"], os.environ["TF_CPP_MIN_LOG_LEVEL"])
"""


@pytest.mark.parametrize(
    "chosen, printed", [(None, "True 16 3"), ("0", "False 0 0")], ids=str
)
def test_what_the_user_has_set_is_left_alone(chosen, printed, monkeypatch):
    for name in ("JAX_ENABLE_X64", "OPENBLAS_THREAD_TIMEOUT", "TF_CPP_MIN_LOG_LEVEL"):
        if chosen is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, chosen)
    command = [sys.executable, "-c", _CHOICES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == printed.split()
