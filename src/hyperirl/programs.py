"""Compiled programs.

A function is a program where Python calls it, and a part where a program does.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.core import Tracer

_USUAL_LEVEL = 3


def is_traced(tree: Any) -> bool:
    """Whether a program that this is part of is being compiled."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def compiled(function: Callable, *, level: int = _USUAL_LEVEL) -> Callable:
    """The function, compiled where it is not part of a program that is.

    Args:
        function: What to compile.
        level: Of XLA's optimizations. Loops of many small operations, such as acting,
            compile in half the time at level 1, and run as fast.
    """
    usual = level == _USUAL_LEVEL
    options = {} if usual else {"xla_backend_optimization_level": level}
    jit: Any = eqx.filter_jit  # It hands on all that `jax.jit` takes.
    program = jit(function, compiler_options=options)

    @functools.wraps(function)
    def call(*args, **kwargs):
        return (function if is_traced((args, kwargs)) else program)(*args, **kwargs)

    return call
