"""A cell that learns a reward: a run folder, and perhaps an evaluation of it.

A cell that was killed goes on from the checkpoint of its run.
"""

import itertools
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.expert import demos_path
from hyperirl.learning import (
    Config,
    Diverged,
    Setup,
    complete,
    create_folder,
    evaluate,
    from_json,
    make_options,
    set_up,
)
from hyperirl.learning import run as run_learning
from hyperirl.learning.config import from_plain, to_plain
from hyperirl.options import Options
from hyperirl.runs import RunError, RunFolder
from hyperirl.tasks import as_task

# What is kept of every outer step, to be drawn.
_COLUMNS = (
    "step seconds step_seconds learned_seconds outer_loss nll_valid floor_valid "
    "true_return rank_corr inner_gap snr damping certificate effective_dimension "
    "agent_episodes"
).split()
_NOT_OPTIONS = ("env", "demos", "horizon")


def learning(
    experiment: str,
    config: Mapping[str, Any],
    *,
    preset: str = "tuned",
    evaluation: Mapping[str, Any] | None = None,
    expert: Cell | None = None,
) -> Cell:
    """A cell that learns.

    Args:
        experiment: Whose cell.
        config: `env`, perhaps `demos` and `horizon`, and the fields of `Options` that
            are said. An `env` that is `module:name` is imported where the cell is done.
        preset: `tuned`, or `paper` for the settings of the paper's authors.
        evaluation: `budget` and `seeds` of the fresh policies, if it is evaluated.
        expert: The cell that made the demonstrations, if it was one; of the same
            experiment.
    """
    settings: dict[str, Any] = {"preset": preset}
    settings["config"] = {name: to_plain(value) for name, value in config.items()}
    settings |= {"evaluation": evaluation}
    settings |= {"expert": None if expert is None else expert.id}
    return Cell(experiment, __name__, settings)


def said_in(settings: Mapping[str, Any]) -> Options:
    """The options of a cell that learns."""
    config = settings["config"].items()
    said = {name: from_plain(v) for name, v in config if name not in _NOT_OPTIONS}
    return make_options(**said)


def settled(settings: Mapping[str, Any]) -> Config:
    """The complete config of a cell that learns, but for its demonstrations."""
    config = settings["config"]
    task = as_task(config["env"], horizon=config.get("horizon"))
    return complete(said_in(settings), task, paper=settings["preset"] == "paper")


def prepared(settings: Mapping[str, Any], demos: str | Path | None = None) -> Setup:
    """All parts of the run of a cell, checked.

    Args:
        settings: Of the cell.
        demos: The demonstrations, if a cell made them.
    """
    config = settings["config"]
    source = config.get("demos") if demos is None else demos
    paper = settings["preset"] == "paper"
    return set_up(
        config["env"],
        source,
        said_in(settings),
        paper=paper,
        horizon=config.get("horizon"),
    )


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """Learns, or goes on learning; then evaluates, if that is asked for."""
    compiling = _listen_for_compilation()
    began = time.monotonic()
    demos = None
    if settings["expert"] is not None:
        demos = demos_path(folder.parent, settings["expert"])
    setup = prepared(settings, demos)
    runs = _run_folder(folder, setup)
    learned = diverged = None
    try:
        learned = run_learning(setup, runs)
    except Diverged as error:
        diverged = str(error)
    rows = runs.metrics()
    result = {
        "config": setup.config.to_json(),
        "rows": {key: [row.get(key) for row in rows] for key in _COLUMNS},
        "diverged": diverged,
        "learn_seconds": time.monotonic() - began,
        "warm_step_seconds": _typical_step(rows),
        "best_nll_valid": rows[-1].get("best_nll_valid") if rows else None,
        "compile_seconds": sum(compiling),
    }
    if settings["evaluation"] is not None and learned is not None:
        wanted = settings["evaluation"]
        found = evaluate(learned, **wanted, transfer=False, progress=False)
        found = {name: value for name, value in found.items() if name != "curves"}
        result["evaluation"] = found
    return result


def _run_folder(folder: Path, setup: Setup) -> RunFolder:
    """The one that is there; or a new one, also where a kill left half of one."""
    if not (folder / "config.json").exists():
        if folder.exists():
            shutil.rmtree(folder)
        return create_folder(setup, folder, ["cell"])
    runs = RunFolder.open(folder)
    if from_json(runs.config) != setup.config:
        raise RunError(
            f"The run in {folder} was begun with other demonstrations or in another "
            "environment than there are now; restore them, or delete the folder."
        )
    return runs


def _typical_step(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The median of the steps that do not compile, which the clock does not count."""
    ends = itertools.pairwise(row["learned_seconds"] for row in rows)
    times = [end - start for start, end in ends if end > start]
    return statistics.median(times) if times else None


def _listen_for_compilation() -> list[float]:
    """Seconds of compilation, also of what the cache saved: as in a first run."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.endswith(("/backend_compile_duration", "/compile_time_saved_sec")):
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return seconds
