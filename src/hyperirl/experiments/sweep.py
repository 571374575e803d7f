"""All combinations of some settings, each with several seeds."""

import difflib
import itertools
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hyperirl.experiments.cell import Cell
from hyperirl.experiments.learn import learning, prepared, settled
from hyperirl.options import NAMES, Options, check_setting, kinds, words

EXPERIMENT = "."  # A sweep has a folder of its own.


def sweep_cells(
    shared: Mapping[str, Any],
    said: Options,
    choices: Sequence[str],
    seeds: int,
    preset: str = "tuned",
) -> list[Cell]:
    """The cells of a sweep.

    Args:
        shared: The `env` of all runs, their `demos` if these are not the task's, and
            their `horizon` if that was said.
        said: What else all runs share.
        choices: Such as `learning_rate=1e-2,3e-2`: a field, and values to try.
        seeds: Of each combination, counted from the one that was said.
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
    first = said.seed or 0
    cells = []
    for values in itertools.product(*(values for _, values in parsed)):
        config = {**shared, **said.said(), **dict(zip(names, values, strict=True))}
        cells += [
            learning(EXPERIMENT, config | {"seed": first + seed}, preset=preset)
            for seed in range(seeds)
        ]
    _check(cells[::seeds])
    return cells


def _check(cells: Sequence[Cell]) -> None:
    """Says what is wrong now, not after an hour."""
    prepared(cells[0].settings)  # With its demonstrations.
    for cell in cells:
        settled(cell.settings)


def parse_choice(text: str) -> tuple[str, list[Any]]:
    """The field and its values, each of the field's type."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values:
        raise ValueError(
            f"`--set {text}` is not FIELD=VALUE,VALUE,...; try `--set "
            "learning_rate=1e-2,3e-2`."
        )
    if name in ("env", "demos"):
        return name, [value.strip() for value in values.split(",")]
    if name not in NAMES:
        known = sorted(("env", "demos", *NAMES))
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        rest = (
            f"do you mean `{near[0]}`?"
            if near
            else f"choose one of {', '.join(known)}."
        )
        raise ValueError(f"There is no setting `{name}`; {rest}")
    return name, [_parse(name, value.strip()) for value in values.split(",")]


def _parse(name: str, text: str) -> Any:
    """The value as one of the types that a field allows."""
    for kind in kinds(name):
        try:
            value = _convert(text, kind)
        except ValueError:
            continue
        check_setting(name, value)
        return value
    wanted = " or ".join(words(kind) for kind in kinds(name))
    raise ValueError(f"`{name}` must be {wanted}, got {text!r}.")


def _convert(text: str, kind: Any) -> Any:
    """A `ValueError` if the text is of another kind."""
    if typing.get_origin(kind) is Literal:
        if text not in typing.get_args(kind):
            raise ValueError
        return text
    if typing.get_origin(kind) is tuple:
        return tuple(int(part) for part in text.split("x") if part)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    return kind(text)
