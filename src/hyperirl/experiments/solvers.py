"""Every curvature solver in the outer loop: what the approximate ones cost.

The same runs with the same seeds; only who solves `(Fisher + damping) v = g` differs.
Against the dense matrix, seed by seed, in held-out likelihood. What the paper does not
have.
"""

import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hyperirl.experiments import figures, titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.learn import learning
from hyperirl.experiments.numbers import last_five, over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.options import Solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Every curvature solver in the outer loop"
ALONE = True  # Its runs are timed.

_ENVIRONMENTS: dict[Budget, tuple[str, ...]] = {
    "quick": ("lqr",),
    "standard": ("cartpole", "lqr"),
    "full": ("cartpole", "lqr"),
}
_SOLVERS: tuple[str, ...] = typing.get_args(Solver)
_EXACT = "explicit"  # What the others are held against.
# What a smaller budget leaves out; `full` is what `hyperirl learn` does.
_SETTINGS: dict[Budget, dict[str, Any]] = {
    "quick": dict(steps=3, policy_hidden=(8, 8), inner_updates=2),
    "standard": dict(steps=15, policy_hidden=(32, 32)),
    "full": {},
}
# So few that `woodbury` can be afforded: it factors a matrix as large as the number of
# score rows, which is 8,000 here.
_EPISODES: dict[Budget, dict[str, int]] = {
    "quick": {"lqr": 8},
    "standard": {"cartpole": 8, "lqr": 16},
    "full": {},
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """A run for each environment, solver and seed."""
    del done  # They do not depend on each other.
    return [
        learning("solvers", _common(env, budget) | dict(solver=solver, seed=seed))
        for env in _ENVIRONMENTS[budget]
        for solver in _SOLVERS
        for seed in range(seeds)
    ]


def _common(env: str, budget: Budget) -> dict[str, Any]:
    """What all solvers share."""
    # The number of trajectories stays, so that all of them do the same work.
    common = dict(env=env, method="fisher", adaptive=False) | _SETTINGS[budget]
    if env in _EPISODES[budget]:
        common["agent_episodes"] = _EPISODES[budget][env]
    return common


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """A table for each environment, and the gaps beside the times."""
    environments = dict.fromkeys(cell.settings["config"]["env"] for cell in cells)
    tables = [_table(env, cells, done) for env in environments]
    configs = [result["config"] for result in done.values()]
    draw = lambda figure: _draw(figure, tables)
    return Outcome(tables, draw, (10.0, 4.0 * len(tables)), _notes(configs))


def _table(env: str, cells: Sequence[Cell], done: Done) -> Table:
    found: dict[str, dict[int, Result]] = {}  # By solver and seed.
    for cell in cells:
        config = cell.settings["config"]
        if config["env"] == env and cell.id in done:
            found.setdefault(config["solver"], {})[config["seed"]] = done[cell.id]
    exact = found.get(_EXACT, {})
    headings = {
        "solver": "solver",
        "best": "held-out gap of the best step, nats",
        "last": "of the last five steps",
        "best_cost": "cost of the best, seed by seed",
        "last_cost": "cost of the last five",
        "certificate": "certificate",
        "seconds": titles.SECONDS,
        "diverged": titles.DIVERGED,
    }
    rows = [_row(solver, results, exact) for solver, results in found.items()]
    return Table(env, headings, rows)


def _row(
    solver: str, results: Mapping[int, Result], exact: Mapping[int, Result]
) -> dict[str, Any]:
    def cost(gap):
        pairs = [(gap(result), gap(exact.get(s))) for s, result in results.items()]
        return over_seeds(a - b for a, b in pairs if a is not None and b is not None)

    own = list(results.values())
    compared = solver != _EXACT
    return {
        "solver": solver,
        "best": over_seeds(_best_gap(result) for result in own),
        "last": over_seeds(_last_gap(result) for result in own),
        "best_cost": cost(_best_gap) if compared else None,
        "last_cost": cost(_last_gap) if compared else None,
        "certificate": over_seeds(last_five(r["rows"]["certificate"]) for r in own),
        "seconds": over_seeds(result["warm_step_seconds"] for result in own),
        "diverged": sum(bool(result["diverged"]) for result in own),
    }


def _best_gap(result: Result | None) -> float | None:
    """Of the step that was kept, above the expert's own NLL."""
    return None if result is None else _above_floor(result, result["best_nll_valid"])


def _last_gap(result: Result | None) -> float | None:
    """Of the last five steps."""
    if result is None:
        return None
    return _above_floor(result, last_five(result["rows"]["nll_valid"]))


def _above_floor(result: Result, nll: float | None) -> float | None:
    floors = result["rows"]["floor_valid"]
    if nll is None or not floors or floors[-1] is None:
        return None
    return nll - floors[-1]


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    for (left, right), table in zip(
        figure.subplots(len(tables), 2, squeeze=False), tables, strict=True
    ):
        names = [row["solver"] for row in table.rows]
        places = list(range(len(names)))
        for index, (key, label) in enumerate(
            (("best", "best step"), ("last", "last five steps"))
        ):
            figures.bars(left, index, 2, label, [row[key] for row in table.rows])
        for place, row in enumerate(table.rows):  # Bars have no foot on this scale.
            figures.line(right, 0, "", [place], [row["seconds"]])
        left.set(ylabel="held-out gap, nats", title=table.title)
        right.set(ylabel=titles.SECONDS, title=table.title, yscale="log")
        figures.compress_beyond(left, 1000.0)
        for axes in (left, right):
            axes.set_xticks(places, names, rotation=60, fontsize=7, ha="right")
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=2)


def _notes(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    used = {config["env"]: config for config in configs}
    settings = "; ".join(
        f"{env}: {c['steps']} outer steps, policy {c['policy_hidden']}, "
        f"{c['damping_scale']} damping {c['damping']:g}, sketches of "
        f"{c['sketch_size']} rows, {c['agent_episodes']} trajectories, "
        f"{c['inner_updates']} updates of {c['inner']} a step"
        for env, c in used.items()
    )
    return [
        f"Settings of all solvers ({settings}) are otherwise those of the task. The "
        "number of trajectories does not change during a run.",
        f"Cost: how much further from the floor than with `{_EXACT}`, which solves the "
        "system with a dense matrix, on the same seed: the same demonstrations, first "
        "reward and first policy. Negative is luck unless the interval says otherwise.",
        "Seconds are medians of outer steps without those that compile; most of a step "
        "is the inner solver. `auto` picks one of the others by size and damping.",
    ]
