"""What a report is made from: runs, and groups of runs that differ by seed only."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hyperirl.metrics import METRICS
from hyperirl.runs import RunError, RunFolder
from hyperirl.verdict import Estimate, Judgement, judgement_of, number, warnings_of

# Which of these a run has does not make it another experiment.
NOT_SETTINGS = ("seed", "test_seed", "out", "name", "overwrite")


@dataclasses.dataclass(frozen=True)
class Run:
    """All that is known about one run."""

    name: str
    path: Path
    config: dict[str, Any]
    provenance: dict[str, Any]
    rows: list[dict[str, Any]]
    evaluation: dict[str, Any]
    picture: dict[str, Any]

    def column(self, key: str) -> np.ndarray:
        """A metric in each row; NaN where it was not recorded."""
        return METRICS[key].column(self.rows)

    def last(self, key: str) -> float:
        """The last value that was recorded."""
        values = self.column(key)
        values = values[np.isfinite(values)]
        return float(values[-1]) if len(values) else math.nan

    @property
    def knows_truth(self) -> bool:
        """Whether there is a true reward, or nothing that says there is none."""
        learned = any("outer_loss" in row for row in self.rows)
        looked = any("true_return" in row for row in self.rows)
        return self.evaluation.get("true_reward") is not False and (
            looked or not learned
        )

    @property
    def warnings(self) -> list[str]:
        """What the run should say of itself."""
        temperature, discount = (
            value if math.isfinite(value := number(self.config.get(name))) else None
            for name in ("temperature", "discount")
        )
        return warnings_of(self.rows, temperature=temperature, discount=discount)

    @property
    def judgement(self) -> Judgement:
        """What it is worth."""
        cloned = self.config.get("method") == "bc"
        return judgement_of(self.rows, self.evaluation, cloned=cloned)

    @property
    def knows_floor(self) -> bool:
        """Whether there is a floor, or nothing that says there is none."""
        if self.evaluation.get("policy_nll") is not None:
            return Estimate.of(self.evaluation.get("floor")).known
        measured = any("nll_valid" in row for row in self.rows)
        return not measured or any("floor_valid" in row for row in self.rows)


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs with the same settings but for the seed; drawn as one line with a band."""

    label: str
    runs: list[Run]


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in some folders, each with a name of its own."""
    if not folders:
        raise RunError("There is no run to report on; give the folder of one.")
    paths = [Path(folder).resolve() for folder in folders]
    if len(set(paths)) != len(paths):
        raise RunError("A run is given twice; name every folder once.")
    names = [path.name for path in paths]
    if len(set(names)) != len(names):
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    return [_read_run(path, name) for path, name in zip(folders, names, strict=True)]


def _read_run(path: Path, name: str) -> Run:
    folder = RunFolder.open(path)
    return Run(
        name=name,
        path=folder.path,
        config=folder.config,
        provenance=folder.provenance,
        rows=folder.metrics(),
        evaluation=folder.load_json("evaluation.json") or {},
        picture=folder.load_json("picture.json") or {},
    )


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Groups in the order in which their first runs were given."""
    gathered: dict[str, list[Run]] = {}
    for run in runs:
        settings = {k: v for k, v in run.config.items() if k not in NOT_SETTINGS}
        gathered.setdefault(repr(sorted(settings.items())), []).append(run)
    groups = list(gathered.values())
    labels = [_label(group) for group in groups]
    if len(set(labels)) != len(labels):
        labels = [
            f"{label}: {group[0].name}" if len(group) > 1 else label
            for label, group in zip(labels, groups, strict=True)
        ]
    return [Group(*pair) for pair in zip(labels, groups, strict=True)]


def _label(runs: list[Run]) -> str:
    if len(runs) == 1:
        return runs[0].name
    config = runs[0].config
    settings = " ".join(str(config[k]) for k in ("env", "method") if k in config)
    return f"{settings} ({len(runs)} seeds)".strip()


def estimate(run: Run, key: str) -> Estimate:
    """A number about a run as a whole: of its evaluation, or of its metrics."""
    if key in run.evaluation:
        return Estimate.of(run.evaluation[key])
    if key == "gap_percent":
        nll, floor = estimate(run, "policy_nll").mean, estimate(run, "floor").mean
        return Estimate(100 * (nll - floor) / abs(floor) if floor else math.nan)
    if key == "clone_gap":
        nll, clone = (
            Estimate.of(run.evaluation.get(k)) for k in ("policy_nll", "bc_nll")
        )
        unknown = run.knows_floor or run.config.get("method") == "bc"
        return Estimate(math.nan if unknown else nll.mean - clone.mean)
    if key == "valid_gap_percent":
        nll, floor = run.last("best_nll_valid"), run.last("floor_valid")
        return Estimate(100 * (nll - floor) / abs(floor) if floor else math.nan)
    return Estimate(run.last(key) if key in METRICS else math.nan)
