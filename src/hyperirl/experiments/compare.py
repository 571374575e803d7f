"""Runs beside each other: means over seeds, the best held-out likelihood first."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperirl.experiments.numbers import mean_of, over_seeds
from hyperirl.experiments.outcome import Table
from hyperirl.experiments.titles import HEADINGS
from hyperirl.report.reading import NOT_SETTINGS, Group, estimate, group_runs, read_runs
from hyperirl.runs import RunError

_NUMBERS = (
    "best_nll_valid",
    "floor_valid",
    "valid_gap_percent",
    "policy_nll",
    "env_return",
    "rank_corr",
    "step",
    "seconds",
)


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The run folders among some folders, and in those that hold several."""
    found: list[Path] = []
    for path in paths:
        if (path / "config.json").exists():
            found.append(path)
            continue
        inside = sorted(file.parent for file in path.glob("**/config.json"))
        if not inside:
            reason = "holds no run" if path.is_dir() else "is not a folder"
            raise RunError(
                f"{path} {reason}; give the folders of runs, or that of a sweep."
            )
        found += inside
    return found


def compare(paths: Sequence[Path]) -> Table:
    """A row for each group of runs that differ by their seeds only, best first."""
    runs = [run for run in read_runs(run_folders(paths)) if run.rows]
    if not runs:
        raise RunError("None of these runs has finished a step yet; wait for one.")
    groups = group_runs(runs)
    differing = _differing(groups)
    rows = [_row(group, differing) for group in groups]
    best = lambda row: mean_of(row["best_nll_valid"])
    rows.sort(key=lambda row: (math.isnan(best(row)), best(row)))
    known = [key for key in _NUMBERS if any(row[key] is not None for row in rows)]
    headings = {name: name for name in (*(differing or ("env", "method")), "runs")}
    headings |= {key: HEADINGS[key] for key in known}
    return Table(f"{len(runs)} runs", headings, rows)


def _differing(groups: Sequence[Group]) -> list[str]:
    """The settings that tell the groups apart."""
    configs = [group.runs[0].config for group in groups]
    names = dict.fromkeys(name for config in configs for name in config)
    values = lambda name: {json.dumps(config.get(name)) for config in configs}
    return [
        name for name in names if name not in NOT_SETTINGS and len(values(name)) > 1
    ]


def _row(group: Group, differing: Sequence[str]) -> dict[str, Any]:
    config = group.runs[0].config
    shown = {name: config.get(name) for name in ("env", "method", *differing)}
    words = lambda v: v if isinstance(v, int | float | str) else json.dumps(v)
    row: dict[str, Any] = {name: words(value) for name, value in shown.items()}
    row["runs"] = len(group.runs)
    for key in _NUMBERS:
        values = [estimate(run, key).mean for run in group.runs]
        found = over_seeds(values)
        row[key] = found if found["n"] else None
    return row
