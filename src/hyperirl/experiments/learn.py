"""A cell that learns a reward: a run folder, and perhaps an evaluation of it.

A cell that was killed goes on from the checkpoint of its run.
"""

import dataclasses
import itertools
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from hyperirl import evaluate, saving
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.expert import demos_path
from hyperirl.learning import (
    Diverged,
    LearnConfig,
    complete,
    demos_of,
    from_dict,
    paper,
)
from hyperirl.learning.loop import run as run_learning
from hyperirl.learning.setup import make_environment
from hyperirl.runs import RunFolder

# What is kept of every outer step, to be drawn.
_COLUMNS = (
    "step seconds step_seconds learned_seconds outer_loss nll_valid floor_valid "
    "true_return rank_corr inner_gap snr damping certificate effective_dimension "
    "agent_episodes"
).split()


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
        config: Fields of `LearnConfig` that are not the defaults.
        preset: `tuned`, or `paper` for the settings of the paper's authors.
        evaluation: `budget` and `seeds` of the fresh policies, if it is evaluated.
        expert: The cell that made the demonstrations, if it was one; of the same
            experiment.
    """
    settings = {"preset": preset, "config": dict(config)}
    settings |= {"evaluation": evaluation}
    settings |= {"expert": None if expert is None else expert.id}
    return Cell(experiment, __name__, settings)


def settled(settings: Mapping[str, Any]) -> LearnConfig:
    """The complete config of a cell that learns."""
    config = from_dict(settings["config"])
    return complete(paper(config) if settings["preset"] == "paper" else config)


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """Learns, or goes on learning; then evaluates, if that is asked for."""
    compiling = _listen_for_compilation()
    began = time.monotonic()
    config = settled(settings)
    if settings["expert"] is not None:
        path = demos_path(folder.parent, settings["expert"])
        config = dataclasses.replace(config, demos=str(path))
    runs = _run_folder(folder, config)
    diverged = None
    try:
        run_learning(config, runs)
    except Diverged as error:
        diverged = str(error)
    rows = runs.metrics()
    result = {
        "config": dataclasses.asdict(config),
        "rows": {key: [row.get(key) for row in rows] for key in _COLUMNS},
        "diverged": diverged,
        "learn_seconds": time.monotonic() - began,
        "warm_step_seconds": _typical_step(rows),
        "best_nll_valid": rows[-1].get("best_nll_valid") if rows else None,
        "compile_seconds": sum(compiling),
    }
    if settings["evaluation"] is not None and runs.policy_path.exists():
        result["evaluation"] = _evaluate(config, runs, settings["evaluation"])
    return result


def _run_folder(folder: Path, config: LearnConfig) -> RunFolder:
    """The one that is there; or a new one, also where a kill left half of one."""
    if (folder / "config.json").exists():
        return RunFolder.open(folder)
    if folder.exists():
        shutil.rmtree(folder)
    return RunFolder.create(folder, dataclasses.asdict(config), ["cell"])


def _typical_step(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The median of the steps that do not compile, which the clock does not count."""
    ends = itertools.pairwise(row["learned_seconds"] for row in rows)
    times = [end - start for start, end in ends if end > start]
    return statistics.median(times) if times else None


def _evaluate(
    config: LearnConfig, runs: RunFolder, settings: Mapping[str, Any]
) -> dict[str, Any]:
    loaded = demos_of(runs)
    environment = make_environment(config, loaded)
    policy = saving.load_policy(runs.policy_path)
    ranking = evaluate.ranking_of_demos(environment, loaded)
    common: dict[str, Any] = dict(
        seed=config.seed, ranking=ranking, policy_for=evaluate.policies_like(policy)
    )
    if not runs.reward_path.exists():
        found = evaluate.evaluate_policy(environment, policy, loaded, **common)
    else:
        found = evaluate.evaluate(
            environment,
            saving.load_reward(runs.reward_path),
            loaded,
            config.problem,
            training=evaluate.Training(budget=settings["budget"]),
            seeds=settings["seeds"],
            transfer=False,
            **common,
        )
    runs.save_json("evaluation.json", found)
    return {name: value for name, value in found.items() if name != "curves"}


def _listen_for_compilation() -> list[float]:
    """Seconds of compilation, also of what the cache saved: as in a first run."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.endswith(("/backend_compile_duration", "/compile_time_saved_sec")):
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return seconds
