"""Modules as plain values that fit into JSON, and back as shapes.

A class that can be in a file says how: `describe` gives its fields as plain values, and
the class method `rebuild` makes it from them, with zeros in place of its numbers. If it
can stand where others can, `kind` is its name there.

A description may come from anybody, so `Fields` looks at every value before it is used.
It never chooses code: the classes it may ask for are given by the reader. Any other
class is described by its name alone, and comes back as what the reader brings.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

OWN = "own"
_DTYPES = ("float32", "float64")
_MAX_SIZE = 10**7
_MAX_NUMBER = 1e30  # Its square is still finite in `float64`, and it in `float32`.
_MAX_LENGTH = 100

M = TypeVar("M", bound=eqx.Module)
S = TypeVar("S", bound=str)
T = TypeVar("T")


class OwnClassError(ValueError):
    """A description names a class that is not among those known, and none is given."""

    def __init__(self, name: str):
        super().__init__(f"the class {name} is not one of hyperirl")
        self.name = name


def describe(module: Any) -> dict[str, Any]:
    """The kind of a module and its fields; the name of a class that has no kind."""
    # Not inherited: a subclass may need more than its parent says.
    if "rebuild" not in vars(type(module)):
        return {"kind": OWN, "class": type(module).__name__}
    return {"kind": module.kind, **module.describe()}


def describe_array(array: jax.Array) -> dict[str, Any]:
    """Its shape and type."""
    return {"shape": list(array.shape), "dtype": str(array.dtype)}


def skeleton(
    values: Any, base: type[M], kinds: Mapping[str, type], own: eqx.Module | None
) -> M:
    """The module described, with shapes in place of arrays.

    Nothing is computed but shapes: a description cannot fill the memory.

    Args:
        values: What `describe` gave.
        base: What the module must be an instance of.
        kinds: The classes it may be made of.
        own: Stands for a class that is not among them.
    """
    return eqx.filter_eval_shape(lambda: Fields(values, kinds, own).module(base))


class Fields:
    """Plain values by name. Each must have the right type, and none may be left."""

    def __init__(
        self, values: Any, kinds: Mapping[str, type], own: eqx.Module | None = None
    ):
        """The values of one module; see `skeleton`."""
        if not isinstance(values, dict):
            raise ValueError(f"{_short(values)} in place of a description")
        self._values = dict(values)
        self._kinds = kinds
        self._own = own

    def take(self, name: str, *types: type) -> Any:
        """A value of one of these types; numbers are finite and not too large."""
        if name not in self._values:
            raise ValueError(f"`{name}` is missing")
        value = self._values.pop(name)
        if not _is_plain(value, *types):
            raise ValueError(f"`{name}` is {_short(value)}")
        if _is_too_large(value):
            raise ValueError(f"`{name}` is {_short(value)}, which is too large")
        return value

    def choice(self, name: str, *choices: S) -> S:
        """One of several words."""
        value = self.take(name, str)
        if value not in choices:
            raise ValueError(
                f"`{name}` is {_short(value)!r}, and known are {', '.join(choices)}"
            )
        return value

    def interval(self, name: str) -> tuple[float, float]:
        """Two numbers; None in place of one is no bound on that side."""
        ends = self.take(name, list)
        plain = all(_is_plain(end, int, float, type(None)) for end in ends)
        if len(ends) != 2 or not plain or any(map(_is_too_large, ends)):
            raise ValueError(f"`{name}` is {_short(ends)}")
        low, high = ends
        return (
            -math.inf if low is None else float(low),
            math.inf if high is None else float(high),
        )

    def sizes(self, name: str) -> tuple[int, ...]:
        """The lengths of axes."""
        values = self.take(name, list)
        plain = all(_is_plain(v, int) and 0 <= v <= _MAX_SIZE for v in values)
        if not plain or len(values) > _MAX_LENGTH:
            raise ValueError(f"the sizes {_short(values)} are not usable")
        return tuple(values)

    def dtype(self) -> str:
        """The type of numbers."""
        return self.choice("dtype", *_DTYPES)

    def array(self, name: str, num_axes: int) -> jax.Array:
        """An array of zeros with the shape and type described."""
        part = self._inside(name)
        shape, dtype = part.sizes("shape"), part.dtype()
        part._finish()
        if len(shape) != num_axes:
            raise ValueError(f"`{name}` has the shape {shape}")
        return jnp.zeros(shape, dtype)

    def part(self, name: str, cls: type[M]) -> M:
        """A module of this class."""
        return self._inside(name)._rebuild(cls)

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """What `read` makes of the value, or None."""
        if name in self._values and self._values[name] is None:
            return self._values.pop(name)
        return read(name)

    def kind_of(self, name: str, base: type[M]) -> M:
        """A module of whatever kind of `base` is described."""
        return self._inside(name).module(base)

    def module(self, base: type[M]) -> M:
        """The module that all of these values describe, a kind of `base`."""
        known = {k: c for k, c in self._kinds.items() if issubclass(c, base)}
        if self._values.get("kind") == OWN:
            return self._given(base)
        return self._rebuild(known[self.choice("kind", *known)])

    def _given(self, base: type[M]) -> M:
        """What was brought for a class that is not known."""
        del self._values["kind"]
        name = _short(self.take("class", str))
        self._finish()
        if type(self._own).__name__ != name or not isinstance(self._own, base):
            raise OwnClassError(name)
        return self._own

    def _rebuild(self, cls: Any) -> Any:
        module = cls.rebuild(self)
        self._finish()
        return module

    def _inside(self, name: str) -> "Fields":
        return Fields(self.take(name, dict), self._kinds, self._own)

    def _finish(self) -> None:
        if self._values:
            raise ValueError(f"`{sorted(self._values)[0][:40]}` is not known")


def _is_plain(value: Any, *types: type) -> bool:
    if isinstance(value, bool):  # Python counts it as an integer.
        return bool in types
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, types)


def _is_too_large(value: Any) -> bool:
    if isinstance(value, float):
        return abs(value) > _MAX_NUMBER
    return isinstance(value, int) and abs(value) > _MAX_SIZE


def _short(value: Any) -> str:
    return str(value)[:40]
