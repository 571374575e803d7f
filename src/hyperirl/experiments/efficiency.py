"""Time for each outer step, and peak memory: each method in fresh processes.

The paper's tables on computational efficiency. A first process compiles; those after it
find the programs in the cache and are measured, so that neither their time nor their
memory is the compiler's.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hyperirl.experiments import figures, titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.final_performance import paper_config
from hyperirl.experiments.learn import learning
from hyperirl.experiments.numbers import mean_of, over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Time per outer step and peak memory"
ALONE = True

_Kind = tuple[str, str, int | None]  # Environment, method and sketch size.
# Seconds a step, MB, gains of memory and time over explicit.
_PAPER: dict[_Kind, tuple[str, ...]] = {
    ("cartpole", "ml-irl", None): ("510.20 ± 120.77", "645.57 ± 1.56", "–", "–"),
    ("cartpole", "explicit", None): ("1464.41", "644.57", "1.00×", "1.00×"),
    ("cartpole", "sketch", 8): ("1132.08 ± 130.33", "662.14 ± 30.00", "0.97×", "1.29×"),
    ("lqr", "ml-irl", None): ("53.61 ± 6.57", "779.83 ± 120.03", "–", "–"),
    ("lqr", "explicit", None): (
        "1037.76 ± 120.69",
        "929.61 ± 198.11",
        "1.00×",
        "1.00×",
    ),
    ("lqr", "sketch", 32): ("995.66 ± 91.16", "725.48 ± 99.84", "1.28×", "1.04×"),
    ("lqr", "sketch", 64): ("1171.03 ± 188.30", "710.89 ± 102.31", "1.31×", "0.89×"),
    ("lqr", "sketch", 128): ("1042.90 ± 160.41", "767.64 ± 122.08", "1.21×", "0.99×"),
    ("lqr", "sketch", 256): ("1316.88", "844.58", "1.10×", "0.79×"),
}
_SIZES: dict[str, dict[Budget, tuple[int, ...]]] = {
    "cartpole": {"quick": (8,), "standard": (8,), "full": (8,)},
    "lqr": {"quick": (32,), "standard": (32, 64, 128, 256), "full": (32, 64, 128, 256)},
}
_ENVIRONMENTS = {
    "quick": ("lqr",),
    "standard": ("cartpole", "lqr"),
    "full": ("cartpole", "lqr"),
}
_STEPS = {"quick": 4, "standard": 5, "full": 20}
_COMPILING = 1000  # The seed of the processes that are not counted.
_MOST_PROCESSES = {"quick": 1, "standard": 5, "full": 10}
# How much of the paper's work for each outer step; the solve itself is not scaled.
_SCALE: dict[str, dict[Budget, dict[str, Any]]] = {
    "cartpole": {
        "quick": dict(inner_updates=5, agent_episodes=50),
        "standard": dict(inner_updates=10, agent_episodes=100),
        "full": {},
    },
    "lqr": {
        "quick": dict(inner_updates=100, agent_episodes=50, policy_hidden=(32, 32)),
        "standard": dict(inner_updates=50, agent_episodes=100),
        "full": {},
    },
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """First one process a method that compiles; when all have, those that count."""
    configs = [
        paper_config(env, method, _SCALE[env][budget]) | size
        for env in _ENVIRONMENTS[budget]
        for method, size in (
            ("explicit", {}),
            *(("sketch", dict(sketch_size=m)) for m in _SIZES[env][budget]),
            ("fisher", {}),
            ("ml-irl", {}),
        )
    ]

    def processes(seed: int) -> list[Cell]:
        # The number of steps is part of the program, so it is the same in all of them.
        more = dict(steps=_STEPS[budget], seed=seed)
        return [learning("efficiency", c | more, preset="paper") for c in configs]

    first = processes(_COMPILING)
    if any(cell.id not in done for cell in first):
        return first
    counted = range(min(seeds, _MOST_PROCESSES[budget]))
    return first + [cell for seed in counted for cell in processes(seed)]


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """A table for each environment."""
    groups: dict[_Kind, list[Result]] = {}
    for cell in cells:
        config = cell.settings["config"]
        if cell.id in done and config["seed"] != _COMPILING:
            kind = config["env"], config["method"], config.get("sketch_size")
            groups.setdefault(kind, []).append(done[cell.id])
    rows = [_row(kind, results) for kind, results in groups.items()]
    explicit = titles.SHORT["explicit"]
    for row in rows:
        base = [r for r in rows if (r["env"], r["method"]) == (row["env"], explicit)]
        for key, gain in (("seconds", "speedup"), ("peak_mb", "memory_gain")):
            values = mean_of(base[0][key]), mean_of(row[key])
            row[gain] = values[0] / values[1] if base else None
    headings = {
        "method": "method",
        "paper_seconds": f"{titles.SECONDS}, paper",
        "seconds": "ours",
        "paper_speedup": "speed-up over explicit, paper",
        "speedup": "ours",
        "paper_mb": "peak RSS in MB, paper",
        "peak_mb": "ours",
        "paper_memory": "memory gain, paper",
        "memory_gain": "ours",
        "compile": "compilation, s",
        "processes": "processes",
    }
    tables = [
        Table(env, headings, [row for row in rows if row["env"] == env])
        for env in dict.fromkeys(row["env"] for row in rows)
    ]
    config = next(iter(groups.values()))[0]["config"] if groups else {}
    draw = lambda figure: _draw(figure, tables)
    return Outcome(tables, draw, (9.0, 2.9 * max(1, len(tables))), _notes(config))


def _row(kind: _Kind, results: Sequence[Result]) -> dict[str, Any]:
    paper = _PAPER.get(kind, ("–",) * 4)
    return {
        "env": kind[0],
        "method": titles.short(results[0]["config"]),
        "paper_seconds": paper[0],
        "seconds": _range(r["warm_step_seconds"] for r in results),
        "paper_mb": paper[1],
        "peak_mb": _range(r["peak_mb"] for r in results),
        "paper_memory": paper[2],
        "paper_speedup": paper[3],
        "compile": _range(r["compile_seconds"] for r in results),
        "processes": len(results),
    }


def _range(values: Iterable[float | None]) -> dict[str, Any]:
    """The mean, between the least and the greatest: there are few."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return over_seeds(known)
    return over_seeds(known) | {"low": min(known), "high": max(known)}


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    panels = figure.subplots(max(1, len(tables)), 2, squeeze=False)
    for (left, right), table in zip(panels, tables, strict=False):
        names = [str(row["method"]) for row in table.rows]
        for axes, key, label in (
            (left, "seconds", "seconds for each outer step"),
            (right, "peak_mb", "peak resident set, MB"),
        ):
            figures.bars(axes, 0, 1, label, [row[key] for row in table.rows])
            axes.set_xticks(range(len(names)), names, rotation=30, fontsize=7)
            axes.set(ylabel=label, title=table.title)


def _notes(config: Mapping[str, Any]) -> list[str]:
    get = config.get
    return [
        "The paper's settings, with less work for each outer step: e.g. "
        f"{get('inner_updates')} updates of {get('inner')} and {get('agent_episodes')} "
        f"trajectories for {get('env')} (paper: 1000 trajectories; 500 updates of "
        "REINFORCE on CartPole, 100k steps of SAC on LQR).",
        "Seconds are medians of outer steps without those that compile. Peak memory is "
        "the largest resident set of a process that found its programs in the cache. "
        "Compilation is what a first run pays once. In this table brackets are the "
        "least and the greatest of the processes.",
        "ML-IRL has the authors' smaller inner budget (a fifth on CartPole, a "
        "hundredth on LQR), so its steps do not compare with those of the others.",
    ]
