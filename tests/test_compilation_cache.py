"""The compilation cache in processes of its own: silent, shared, and mended."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys
if sys.argv[1:] == ["jax first"]:
    import jax
import hyperirl
import jax
import jax.numpy as jnp
from hyperirl._jax import enable_compilation_cache
enable_compilation_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
for n in range(3):
    program = jax.jit(lambda x: jnp.sort(jnp.sin(x @ x) * n)[jnp.arange(3)])
    program(jnp.ones((8 + n, 8 + n))).block_until_ready()
"""


def start(home, *words):
    dropped = ("JAX_COMPILATION_CACHE_DIR", "TF_CPP_MIN_LOG_LEVEL")
    environment = {k: v for k, v in os.environ.items() if k not in dropped}
    environment["XDG_CACHE_HOME"] = str(home)
    command = [sys.executable, "-c", _PROGRAM, *words]
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, cwd=home
    )


def said(process) -> str:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return errors


def entries(home):
    return {file.name: file for file in (home / "hyperirl" / "xla").glob("*-cache")}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Where two processes started at once, for the first time."""
    home = tmp_path_factory.mktemp("filled")
    processes = [start(home) for _ in range(2)]
    for errors in map(said, processes):
        assert errors == "" or "compiled again and replaced" in errors
    return home


@pytest.mark.parametrize("words", [[], ["jax first"]], ids=str)
def test_programs_from_the_cache_raise_no_false_alarm(filled, words):
    before = entries(filled)
    assert before
    assert said(start(filled, *words)) == ""
    assert entries(filled).keys() == before.keys()  # They were used.


def test_a_damaged_cache_gets_one_sentence_and_is_mended(filled):
    for place, file in enumerate(entries(filled).values()):
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2] if place % 2 else b"nonsense")
    errors = said(start(filled))
    assert errors.count("\n") == 1 and "compiled again and replaced" in errors
    assert said(start(filled)) == ""
