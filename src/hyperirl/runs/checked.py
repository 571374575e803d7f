"""Documents checked against types: a dataclass or fields from what a file says.

```
config = as_dataclass(Config, folder.config, f"{folder.path}/config.json")
```
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from hyperirl.runs.errors import RunError

T = TypeVar("T")


def as_dataclass(
    cls: type[T], document: Any, where: str | Path, *, whole: bool = False
) -> T:
    """A dataclass from a document, each field of the type that is annotated.

    Lists become tuples and whole numbers floats where the annotations say so.

    Args:
        cls: A dataclass; its fields may be numbers, texts, choices, sequences,
            mappings, other dataclasses, and unions of these.
        document: What JSON gave.
        where: What to call it in errors, such as the path of the file.
        whole: Whether fields that have a default must be there too.
    """
    values = mapping(document, where)
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(typing.cast(Any, cls)) if f.init}
    if unknown := sorted(set(values) - set(fields)):
        raise RunError(
            f"{where} has an unknown field {_short(unknown[0])}; it was written by "
            "another version of hyperirl, so install that one, or remove the field."
        )
    needed = [name for name, field in fields.items() if whole or not _optional(field)]
    if missing := [name for name in needed if name not in values]:
        raise RunError(
            f"{where} lacks the field `{missing[0]}`; restore the file, or learn again."
        )
    return cls(**{n: as_type(hints[n], v, n, where) for n, v in values.items()})


def as_type(hint: Any, value: Any, name: str, where: str | Path) -> Any:
    """A value as an annotated type has it; the error names it."""
    try:
        return _convert(hint, value, name, where)
    except _Mismatch:
        raise RunError(
            f"`{name}` in {where} is {_short(value)}, which is not {words(hint)}; "
            "correct it, or restore the file."
        ) from None


def check_fields(document: Any, hints: Mapping[str, Any], where: str | Path) -> None:
    """Refuses a document in which one of these fields is there and of another type."""
    values = mapping(document, where)
    for name in hints:
        if name in values:
            as_type(hints[name], values[name], name, where)


def mapping(document: Any, where: str | Path) -> dict[str, Any]:
    """The document, if it is one of named values."""
    if not isinstance(document, dict):
        raise RunError(
            f"{where} holds {_short(document)} in place of named values; restore the "
            "file, or remove it if it is not needed."
        )
    return document


def words(hint: Any) -> str:
    """A type for people, such as `a whole number or null`."""
    if hint in _PLAIN:
        return _PLAIN[hint].words
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(map(str, args))}"
    if _is_union(hint):
        return " or ".join(words(arg) for arg in args)
    if _is_sequence(origin):
        return (
            "a list"
            if Ellipsis in args or origin is not tuple
            else f"{len(args)} values"
        )
    return "named values"


class _Mismatch(Exception):
    """A value is of another type."""


@dataclasses.dataclass(frozen=True)
class _Plain:
    """A type without parts."""

    words: str
    known: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


_PLAIN: dict[Any, _Plain] = {
    Any: _Plain("anything", lambda value: True),
    types.NoneType: _Plain("null", lambda value: value is None),
    bool: _Plain("true or false", lambda value: type(value) is bool),
    int: _Plain("a whole number", lambda value: type(value) is int),
    float: _Plain(
        "a number",
        lambda value: type(value) in (int, float) and not math.isnan(value),
        float,
    ),
    str: _Plain("text", lambda value: type(value) is str),
    Path: _Plain("a path", lambda value: type(value) is str, Path),
}


def _convert(hint: Any, value: Any, name: str, where: str | Path) -> Any:
    if hint in _PLAIN:
        if not _PLAIN[hint].known(value):
            raise _Mismatch
        return _PLAIN[hint].convert(value)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise _Mismatch
        return as_dataclass(typing.cast(type, hint), value, f"`{name}` in {where}")
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    inside = lambda hint, value: _convert(hint, value, name, where)
    if origin is Literal:
        return _choice(args, value)
    if _is_union(hint):
        return _first(args, value, inside)
    if _is_sequence(origin):
        return _sequence(origin, args, value, inside)
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: inside(args[1], item) for key, item in value.items()}
    raise _Mismatch


def _choice(choices: Sequence[Any], value: Any) -> Any:
    """By type too: 1 is not true."""
    if not any(type(c) is type(value) and c == value for c in choices):
        raise _Mismatch
    return value


def _first(hints: Sequence[Any], value: Any, convert: Callable) -> Any:
    """As the first type that fits; a whole number is one before it is a float."""
    for hint in sorted(hints, key=lambda hint: hint is float):
        try:
            return convert(hint, value)
        except _Mismatch:
            continue
    raise _Mismatch


def _sequence(origin: Any, args: tuple, value: Any, convert: Callable) -> Any:
    if not isinstance(value, list | tuple):
        raise _Mismatch
    fixed = origin is tuple and Ellipsis not in args
    if fixed and len(args) != len(value):
        raise _Mismatch
    hints = args if fixed else [args[0]] * len(value)
    items = [convert(hint, item) for hint, item in zip(hints, value, strict=True)]
    return items if origin is list else tuple(items)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_sequence(origin: Any) -> bool:
    return origin in (tuple, list, Sequence)


def _optional(field: dataclasses.Field) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
