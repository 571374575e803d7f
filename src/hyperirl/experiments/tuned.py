"""Tuned runs: trials over learning rate and damping, then the runs that count.

Every method gets the same number of trials, judged by held-out likelihood alone. All of
them keep the same episodes for the evaluation, so that no trial has seen what a run is
judged on. Three experiments look at these runs, which are done once.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from hyperirl.experiments import titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.learn import learning
from hyperirl.experiments.outcome import Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.learning import complete
from hyperirl.options import Method, Options
from hyperirl.tasks import Task, make

NAME = "final-performance"  # In whose folder they are.
METHODS: tuple[Method, ...] = (
    "ml-irl",
    "explicit",
    "sketch",
    "fisher",
    "soft-bellman",
    "matching",
    "nhgd",
    "parl",
    "penalty",
    "bc",
)
# Seconds of learning without compilation; the paper has 86,400.
SECONDS: dict[Budget, float] = {"quick": 4.0, "standard": 30.0, "full": 300.0}
_TRIAL_SECONDS: dict[Budget, float] = {"quick": 2.0, "standard": 8.0, "full": 60.0}
# Of the training after which a policy has settled, which the task knows.
_FRESH_SHARE: dict[Budget, float] = {"quick": 0.05, "standard": 0.3, "full": 1.0}
_FRESH_SEEDS: dict[Budget, int] = {"quick": 1, "standard": 1, "full": 2}
_UNDAMPED: tuple[Method, ...] = ("ml-irl", "soft-bellman", "matching")
# The grid: factors of the defaults. Without a damping there are more rates.
_RATES: dict[Budget, tuple[float, ...]] = {
    "quick": (1.0,),
    "standard": (1.0, 1 / 3),
    "full": (3.0, 1.0, 1 / 3),
}
_DAMPINGS: dict[Budget, tuple[float, ...]] = {
    "quick": (1.0,),
    "standard": (1.0, 10.0),
    "full": (0.1, 1.0, 10.0),
}
_MORE_RATES: dict[Budget, tuple[float, ...]] = {
    "quick": (1.0,),
    "standard": (1.0, 1 / 3, 0.1, 0.03),
    "full": (3.0, 1.0, 0.5, 1 / 3, 0.2, 0.1, 0.05, 0.03, 0.01),
}
TEST_SEED = 0  # Of all trials and runs: they keep the same episodes for evaluation.
_TRIAL_SEED = 1000  # Deals out the others in another way than any run.


def fresh_steps(task: Task, budget: Budget) -> int:
    """How long a fresh policy is trained."""
    return round(_FRESH_SHARE[budget] * task.budget)


def evaluation(env: str, budget: Budget) -> dict[str, int]:
    """How a run that counts is evaluated."""
    steps = fresh_steps(make(env), budget)
    return {"budget": steps, "seeds": _FRESH_SEEDS[budget]}


def tuned_cells(
    env: str, methods: Sequence[Method], budget: Budget, seeds: int, done: Done
) -> list[Cell]:
    """The trials of some methods, and the runs of those whose trials are done."""
    wanted: list[Cell] = []
    for method in methods:
        trials = _trials(env, method, budget)
        wanted += trials
        if all(trial.id in done for trial in trials):
            wanted += _final_runs(env, method, budget, seeds, done)
    return wanted


def _trials(env: str, method: Method, budget: Budget) -> list[Cell]:
    """The same number for every method that learns a reward; none without a choice."""
    if method == "bc":
        return []
    base = complete(Options(method=method), make(env))
    grid = list(itertools.product(_RATES[budget], _DAMPINGS[budget]))
    if method in _UNDAMPED:
        grid = [(rate, 1.0) for rate in _MORE_RATES[budget]]
    if len(grid) == 1:
        return []
    return [
        learning(
            NAME,
            dict(
                env=env,
                method=method,
                learning_rate=_round(rate * base.learning_rate),
                damping=_round(damping * base.damping),
                time=_TRIAL_SECONDS[budget],
                seed=_TRIAL_SEED,
                test_seed=TEST_SEED,
            ),
        )
        for rate, damping in grid
    ]


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _chosen(trials: Sequence[Cell], done: Done) -> dict[str, Any]:
    """The settings with the best held-out likelihood."""
    nll = lambda cell: done[cell.id]["best_nll_valid"]
    known = [cell for cell in trials if nll(cell) is not None] or list(trials)
    best = min(known, key=lambda cell: nll(cell) or math.inf)
    return {k: best.settings["config"][k] for k in ("learning_rate", "damping")}


def _final_runs(
    env: str, method: Method, budget: Budget, seeds: int, done: Done
) -> list[Cell]:
    """The runs of a method, whose trials are done."""
    config: dict[str, Any] = dict(env=env, method=method, test_seed=TEST_SEED)
    if method != "bc":
        config["time"] = SECONDS[budget]
    if trials := _trials(env, method, budget):
        config |= _chosen(trials, done)
    return [
        learning(NAME, config | dict(seed=seed), evaluation=evaluation(env, budget))
        for seed in range(seeds)
    ]


def is_final(cell: Cell) -> bool:
    """Whether a cell is a run that counts, not a trial or an expert."""
    return cell.settings.get("evaluation") is not None


def group(
    cells: Sequence[Cell], done: Done, preset: str
) -> dict[tuple[str, str], list[Result]]:
    """Results of the runs that count, by environment and method."""
    found: dict[tuple[str, str], list[Result]] = {}
    for cell in cells:
        if is_final(cell) and cell.id in done and cell.settings["preset"] == preset:
            config = cell.settings["config"]
            key = config["env"], config["method"]
            found.setdefault(key, []).append(done[cell.id])
    return found


def trials_table(cells: Sequence[Cell], done: Done) -> Table:
    """Every trial, and which one won."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        config = cell.settings.get("config", {})
        if config.get("seed") == _TRIAL_SEED and cell.id in done:
            groups.setdefault((config["env"], config["method"]), []).append(cell)
    rows = []
    for (env, method), trials in groups.items():
        picked = _chosen(trials, done)
        rows += [
            {"env": env, "method": titles.METHODS[method]}
            | {key: trial.settings["config"][key] for key in picked}
            | {
                "nll": done[trial.id]["best_nll_valid"],
                "chosen": "yes"
                if all(trial.settings["config"][k] == v for k, v in picked.items())
                else "",
            }
            for trial in trials
        ]
    headings = {
        "env": "environment",
        "method": "method",
        "learning_rate": "learning rate",
        "damping": "damping",
        "nll": titles.HEADINGS["best_nll_valid"],
        "chosen": "chosen",
    }
    return Table("Trials", headings, rows)
