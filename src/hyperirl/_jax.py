"""Sets JAX up so that it computes right, before anything imports it.

Four things happen on `import hyperirl`; docs/jax.md explains them.

- JAX releases from 0.10.2 on miscompile `((a @ zeros) * x).sum(1)` on CPU. The package
  depends on an older one; if a newer one is installed all the same, the XLA option that
  avoids the bug is set while that is still possible, and a warning is given when it is
  too late.
- 64-bit types are switched on: the small solves (Gram matrices, Riccati, least squares)
  need them. Everything large is `float32` by explicit choice.
- The threads of OpenBLAS, which does JAX's eigenvalues and Cholesky factors on CPU,
  sleep when they have nothing to do instead of keeping the cores from everybody else.
- XLA's log is silent. On some processors it fills the terminal with false alarms when a
  program comes from the compilation cache; real errors are Python exceptions anyway.
"""

import contextlib
import importlib.metadata
import os
import pathlib
import sys
import warnings

from hyperirl._cache import mend

_LOG_LEVEL, _FATAL = "TF_CPP_MIN_LOG_LEVEL", "3"
_WORKAROUND = "--xla_cpu_experimental_ynn_fusion_type="


def _miscompiles(version: str) -> bool:
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    return numbers >= (0, 10, 2)


def _choose_backend_flags() -> None:
    version = importlib.metadata.version("jaxlib")
    flags = os.environ.get("XLA_FLAGS", "")
    if not _miscompiles(version) or _WORKAROUND in flags:
        return
    if "jax" in sys.modules:
        warnings.warn(
            f"jaxlib {version} miscompiles products with zeros on CPU, and JAX was "
            "imported before hyperirl, so results may be wrong. Import hyperirl first, "
            f"or set XLA_FLAGS={_WORKAROUND}, or install jax==0.10.1.",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    os.environ["XLA_FLAGS"] = f"{flags} {_WORKAROUND}".strip()


def _silence() -> None:
    """Only what is fatal is logged, unless the user has chosen a level."""
    if "jax" not in sys.modules:
        os.environ.setdefault(_LOG_LEVEL, _FATAL)
        return
    if os.environ.get(_LOG_LEVEL) != "1":  # What JAX itself sets.
        return
    os.environ[_LOG_LEVEL] = _FATAL  # For processes that are started from here.
    with contextlib.suppress(ImportError):  # It is not part of JAX's interface.
        from jaxlib.utils import absl_set_min_log_level

        absl_set_min_log_level(int(_FATAL))


_choose_backend_flags()
_silence()
# Wait for 2^16 cycles, not 2^26.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

import jax  # noqa: E402

# An explicit choice by the user, either way, is left alone.
if "JAX_ENABLE_X64" not in os.environ:
    jax.config.update("jax_enable_x64", True)


def enable_compilation_cache() -> None:
    """Keeps compiled programs between processes, unless JAX is told where already."""
    if getattr(jax.config, "jax_compilation_cache_dir") is None:  # noqa: B009
        root = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
        folder = os.path.join(root, "hyperirl", "xla")
        mend(pathlib.Path(folder))
        jax.config.update("jax_compilation_cache_dir", folder)
        # All of them: a start has a hundred small ones, and reads them faster than it
        # compiles them.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
