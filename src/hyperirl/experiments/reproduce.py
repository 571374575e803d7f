"""Runs an experiment's cells, and writes down what they say.

`OUT/NAME/` has `results.json` (all numbers), `table.md`, `figure.svg` and `figure.png`;
`OUT/report.html` has everything found so far.
"""

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

from hyperirl.experiments import figures
from hyperirl.experiments.cell import Cell, Result, finished
from hyperirl.experiments.outcome import Outcome
from hyperirl.experiments.page import write_page
from hyperirl.runs import atomic
from hyperirl.runs.provenance import provenance

Budget = Literal["quick", "standard", "full"]
Name = Literal[
    "identities",
    "estimators",
    "damping",
    "sketch-size",
    "solvers",
    "efficiency",
    "final-performance",
    "curves",
    "transfer",
]
NAMES: tuple[Name, ...] = get_args(Name)
SEEDS: dict[Budget, int] = {"quick": 1, "standard": 5, "full": 5}

Done = Mapping[str, Result]
RunCells = Callable[[Sequence[Cell], bool], Mapping[str, str]]


@runtime_checkable
class Experiment(Protocol):
    """What a module of this package offers."""

    TITLE: str
    ALONE: bool

    def cells(self, budget: Budget, seeds: int, done: Done) -> Sequence[Cell]:
        """The cells needed, as far as the results so far tell."""
        ...

    def summarize(self, cells: Sequence[Cell], done: Done) -> Outcome:
        """What the results say."""
        ...


def load(name: Name) -> Experiment:
    """The module of an experiment."""
    module = importlib.import_module(f"hyperirl.experiments.{name.replace('-', '_')}")
    return cast(Experiment, module)


def reproduce(
    name: Name, budget: Budget, seeds: int, out: Path, run_cells: RunCells
) -> dict[str, str]:
    """Does what is not done yet, then writes tables, figure and page.

    Args:
        name: Of the experiment.
        budget: How much of it.
        seeds: Repetitions.
        out: The folder of all experiments.
        run_cells: Runs cells, alone on the machine or not; returns why some failed,
            by their ids.

    Returns:
        Why cells failed, by their ids.
    """
    figures.check_matplotlib()
    experiment = load(name)
    failed: dict[str, str] = {}
    done: Done = {}
    while True:  # Until new results ask for no new cells.
        wanted = experiment.cells(budget, seeds, done)
        found = finished(wanted, out)
        left = [c for c in wanted if c.id not in found and c.id not in failed]
        if left:
            failed |= run_cells(left, experiment.ALONE)
            found = finished(wanted, out)
        if found.keys() == done.keys():
            break
        done = found
    outcome = experiment.summarize(wanted, done)
    about = {"name": name, "title": experiment.TITLE, "budget": budget, "seeds": seeds}
    about |= {"cells": len(wanted), "failed": failed}
    _write(out / name, about, outcome)
    write_page(out, NAMES)
    return failed


def _write(folder: Path, about: dict[str, Any], outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, data in figures.render(outcome.draw, outcome.size).items():
        atomic.write_bytes(folder / f"figure.{kind}", data)
    atomic.write_bytes(folder / "table.md", _markdown(about, outcome).encode())
    tables = [
        {"title": t.title, "headings": t.headings, "rows": t.rows}
        for t in outcome.tables
    ]
    found = about | {"tables": tables, "notes": outcome.notes}
    found["provenance"] = provenance(["hyperirl", *sys.argv[1:]])
    text = json.dumps(found, indent=1, allow_nan=False)
    atomic.write_bytes(folder / "results.json", text.encode())


def _markdown(about: Mapping[str, Any], outcome: Outcome) -> str:
    parts = [f"## {about['title']}", budget_words(about)]
    parts += [table.markdown() for table in outcome.tables]
    parts += ["\n".join(f"- {note}" for note in outcome.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def budget_words(about: Mapping[str, Any]) -> str:
    """How much was run, in a sentence."""
    failed = len(about["failed"])
    lost = f" {failed} of them failed and are left out." if failed else ""
    many = "seed" if about["seeds"] == 1 else "seeds"
    return (
        f"Budget `{about['budget']}`, {about['seeds']} {many}, {about['cells']} "
        f"cells.{lost} Means with 95 % intervals over seeds."
    )
