"""What commands are made of: kinds of arguments, and words about them."""

import ast
import dataclasses
import functools
import inspect
import os
from pathlib import Path
from typing import Annotated, TypeVar, dataclass_transform

import tyro

T = TypeVar("T")

_NO_HINT = tyro.conf.arg(help_behavior_hint="")

# A switch that is off unless it is named.
Flag = Annotated[tyro.conf.FlagCreatePairsOff[bool], _NO_HINT]
# What need not be said. The help text tells what happens then, so no hint follows it.
Maybe = tyro.conf.DisallowNone[Annotated[T | None, _NO_HINT]]


@dataclass_transform(frozen_default=True)
def command(kind: type[T]) -> type[T]:
    """A frozen dataclass whose fields are options; what stands below each is its help.

    The parser would keep the line breaks of the source.
    """
    hints = inspect.get_annotations(kind)
    for name, words in meanings(kind).items():
        hints[name] = Annotated[hints[name], tyro.conf.arg(help=words)]
    kind.__annotations__ = hints
    return dataclasses.dataclass(frozen=True)(kind)


def meanings(kind: type) -> dict[str, str]:
    """What a class says below each of its fields, on one line each."""
    (body,) = [
        node.body
        for node in ast.walk(_tree(inspect.getsourcefile(kind) or ""))
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    ]
    found: dict[str, str] = {}
    for field, words in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            if isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant):
                found[field.target.id] = " ".join(str(words.value.value).split())
    return found


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


RUNS = Path("runs")
_LATEST = "latest"


def run_path(path: Path) -> Path:
    """The folder of a run as the user named it; `latest` is the newest in `runs/`."""
    if str(path) not in (_LATEST, str(RUNS / _LATEST)) or Path(_LATEST).exists():
        return path
    link = RUNS / _LATEST
    if not link.exists():
        raise ValueError(
            f"There is no latest run, for {link} does not exist; start one with "
            "`hyperirl learn`, or give the folder of a run."
        )
    return RUNS / os.readlink(link) if link.is_symlink() else link


def point_latest_to(folder: Path) -> None:
    """Makes `runs/latest` a link to a run, if the run is in `runs/`.

    A real file or folder of that name stays as it is, and so does everything where
    links cannot be made.
    """
    link = RUNS / _LATEST
    if folder.parent.resolve() != RUNS.resolve() or folder.name == _LATEST:
        return
    if link.exists() and not link.is_symlink():
        return
    fresh = RUNS / f".{_LATEST}-{os.getpid()}"
    try:
        fresh.symlink_to(folder.name, target_is_directory=True)
        fresh.replace(link)
    except OSError:
        fresh.unlink(missing_ok=True)
