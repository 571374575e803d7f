"""All combinations of some settings, each with several seeds."""

import dataclasses
import itertools
import math
import types
import typing
from collections.abc import Sequence
from typing import Any, Literal

from hyperirl.experiments.cell import Cell
from hyperirl.experiments.learn import learning
from hyperirl.learning import LearnConfig

EXPERIMENT = "."  # A sweep has a folder of its own.


def sweep_cells(
    config: LearnConfig, choices: Sequence[str], seeds: int, preset: str = "tuned"
) -> list[Cell]:
    """The cells of a sweep.

    Args:
        config: What all runs share.
        choices: Such as `learning_rate=1e-2,3e-2`: a field, and values to try.
        seeds: Of each combination, counted from the config's own.
        preset: `tuned` or `paper`.
    """
    if seeds < 1:
        raise ValueError(f"`--seeds` must be at least 1, got {seeds}.")
    parsed = [parse_choice(choice) for choice in choices]
    names = [name for name, _ in parsed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"`{twice[0]}` is set twice; give all its values at once.")
    if "seed" in names:
        raise ValueError("Seeds are chosen by `--seed` and `--seeds`, not by `--set`.")
    unchanged = LearnConfig()
    shared = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != getattr(unchanged, field.name)
    }
    cells = []
    for values in itertools.product(*(values for _, values in parsed)):
        combination = shared | dict(zip(names, values, strict=True))
        LearnConfig(**combination)  # Says what is wrong now, not after an hour.
        cells += [
            learning(
                EXPERIMENT, combination | {"seed": config.seed + seed}, preset=preset
            )
            for seed in range(seeds)
        ]
    return cells


def parse_choice(text: str) -> tuple[str, list[Any]]:
    """The field and its values, each of the field's type."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    hints = typing.get_type_hints(LearnConfig)
    if not equals or not values:
        raise ValueError(
            f"`--set {text}` is not FIELD=VALUE,VALUE,...; try `--set "
            "learning_rate=1e-2,3e-2`."
        )
    if name not in hints:
        raise ValueError(
            f"There is no setting `{name}`; choose one of {', '.join(sorted(hints))}."
        )
    return name, [
        _parse(name, value.strip(), hints[name]) for value in values.split(",")
    ]


def _parse(name: str, text: str, hint: Any) -> Any:
    """The value as one of the types that a field allows; `none` only as none."""
    allowed = typing.get_args(hint) if _is_union(hint) else (hint,)
    for kind in sorted(allowed, key=lambda kind: kind is not types.NoneType):
        try:
            return _convert(text, kind)
        except ValueError:
            continue
    wanted = " or ".join(_words(kind) for kind in allowed)
    raise ValueError(f"`{name}` must be {wanted}, got {text!r}.")


def _is_union(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union


def _convert(text: str, kind: Any) -> Any:
    """A `ValueError` if the text is of another kind."""
    if kind is types.NoneType:
        if text.lower() == "none":
            return None
        raise ValueError
    if typing.get_origin(kind) is Literal:
        if text in typing.get_args(kind):
            return text
        raise ValueError
    if typing.get_origin(kind) is tuple:
        return [int(part) for part in text.split("x") if part]
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise ValueError
    if kind is int:
        return int(text)
    if kind is float:
        if not math.isfinite(value := float(text)):
            raise ValueError
        return value
    return text


def _words(kind: Any) -> str:
    if kind is types.NoneType:
        return "none"
    if typing.get_origin(kind) is Literal:
        return ", ".join(map(str, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return "sizes such as 32x32"
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(
        kind, "text"
    )
