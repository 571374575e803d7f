"""What each method learns in the same time: the paper's table of final performance.

Twice. `tuned`: each method gets the same number of trials over learning rate and
damping, judged by held-out likelihood alone; experts are soft-optimal, so that the
floor can be reached. `paper`: the authors' settings, scaled, on experts made their way.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hyperirl.experiments import figures, titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.expert import expert
from hyperirl.experiments.learn import learning
from hyperirl.experiments.numbers import mean_of, over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.experiments.tuned import (
    METHODS,
    NAME,
    SECONDS,
    evaluation,
    group,
    is_final,
    trials_table,
    tuned_cells,
)
from hyperirl.learning import complete
from hyperirl.options import Options
from hyperirl.tasks import make

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Final performance in the same wall-clock time"
ALONE = False

_ENVIRONMENTS: dict[Budget, tuple[str, ...]] = {
    "quick": ("lqr",),
    "standard": ("cartpole", "cartpole-fixed", "lqr"),
    "full": ("cartpole", "cartpole-fixed", "lqr"),
}
# The authors' work for each outer step, scaled so that a few dozen fit into the time.
_PAPER_SCALE: dict[Budget, dict[str, dict[str, Any]]] = {
    "quick": {"lqr": dict(inner_updates=50, agent_episodes=20, policy_hidden=(16, 16))},
    "standard": {
        "cartpole": dict(inner_updates=10, agent_episodes=50),
        "lqr": dict(inner_updates=100, agent_episodes=50),
    },
    "full": {"cartpole": {}, "lqr": {}},
}
_PAPER_METHODS = METHODS[:3]
# Of the inner work of the other methods for an outer step, as the authors have it:
# 100 of 500 updates of REINFORCE, 1,000 of 100,000 steps of SAC.
_ML_IRL_SHARE = {"reinforce": 1 / 5, "sac": 1 / 100}
_EXPERT: dict[Budget, dict[str, dict[str, int]]] = {
    "quick": {"lqr": dict(steps=20_000, episodes=40)},
    "standard": {
        "cartpole": dict(steps=100_000, episodes=100),
        "lqr": dict(steps=300_000, episodes=100),
    },
    "full": {
        "cartpole": dict(steps=100_000, episodes=1200),
        "lqr": dict(steps=1_000_000, episodes=1200),
    },
}
_PAPER: dict[tuple[str, str], tuple[str, str, str]] = {
    ("cartpole", "ml-irl"): ("331.20 ± 0.23", "500.00 ± 0.00", "0.892 ± 0.009"),
    ("cartpole", "explicit"): ("281.53 ± 0.21", "500.00 ± 0.00", "0.901 ± 0.007"),
    ("cartpole", "sketch"): ("183.35 ± 1.66", "500.00 ± 0.00", "0.870 ± 0.011"),
    ("lqr", "ml-irl"): ("248.25 ± 2.33", "−25.38 ± 1.32", "0.908 ± 0.012"),
    ("lqr", "explicit"): ("284.57 ± 3.24", "−36.82 ± 1.82", "0.953 ± 0.007"),
    ("lqr", "sketch"): ("252.37 ± 1.33", "−28.58 ± 1.29", "0.972 ± 0.005"),
}
_PAPER_ENDS = {
    "cartpole": "ExpertRet 500.00 ± 0.00, RandomRet 22.47 ± 0.99",
    "lqr": "ExpertRet −23.23 ± 1.16, RandomRet −10828.62 ± 721.99",
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """Trials and experts first; then, as they are known, the runs that count."""
    wanted: list[Cell] = []
    for env in _ENVIRONMENTS[budget]:
        wanted += tuned_cells(env, METHODS, budget, seeds, done)
    for env, scale in _PAPER_SCALE[budget].items():
        maker = expert(NAME, env, **_EXPERT[budget][env])
        wanted.append(maker)
        if maker.id not in done:
            continue
        wanted += [
            learning(
                NAME,
                paper_config(env, method, scale)
                | dict(seed=seed, time=SECONDS[budget]),
                preset="paper",
                evaluation=evaluation(env, budget),
                expert=maker,
            )
            for method in _PAPER_METHODS
            for seed in range(seeds)
        ]
    return wanted


def paper_config(env: str, method: str, scale: Mapping[str, Any]) -> dict[str, Any]:
    """The authors' settings, scaled; ML-IRL has its own, smaller inner budget."""
    config: dict[str, Any] = dict(scale) | dict(env=env, method=method)
    if method == "ml-irl":
        whole = complete(Options(), make(env), paper=True)
        updates = config.get("inner_updates", whole.inner_updates)
        config["inner_updates"] = max(1, round(_ML_IRL_SHARE[whole.inner] * updates))
    return config


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """The paper's table for each environment and preset, and what was chosen."""
    tables = []
    for preset, title in (("tuned", "tuned"), ("paper", "the authors' settings")):
        groups = group(cells, done, preset)
        for env in dict.fromkeys(env for env, _ in groups):
            rows = [
                _row(env, method, groups[env, method])
                for method in METHODS
                if (env, method) in groups
            ]
            tables.append(Table(f"{env}, {title}", _known_headings(rows), rows))
    trials = trials_table(cells, done)
    tables += [trials] if trials.rows else []
    draw = lambda figure: _draw(figure, [t for t in tables if "tuned" in t.title])
    rows = 1 + sum("tuned" in table.title for table in tables) // 2
    return Outcome(tables, draw, (9.0, 3.2 * rows), _notes(cells))


_HEADINGS = {
    "method": "method",
    "paper_nll": f"{titles.HEADINGS['policy_nll']}, paper",
    "policy_nll": f"{titles.HEADINGS['policy_nll']}, ours",
    "floor": titles.HEADINGS["floor"],
    "gap_percent": titles.HEADINGS["gap_percent"],
    "solved_gap_percent": titles.HEADINGS["solved_gap_percent"],
    "paper_return": f"{titles.HEADINGS['env_return']}, paper",
    "env_return": f"{titles.HEADINGS['env_return']}, ours",
    "solved_return": titles.HEADINGS["solved_return"],
    "hard_return": titles.HEADINGS["hard_return"],
    "hard_true_return": titles.HEADINGS["hard_true_return"],
    "expert_return": titles.HEADINGS["expert_return"],
    "random_return": titles.HEADINGS["random_return"],
    "paper_rank": f"{titles.HEADINGS['rank_corr']}, paper",
    "rank_corr_soft": f"{titles.HEADINGS['rank_corr']}, ours",
    "rank_corr": f"{titles.HEADINGS['rank_corr']}, with its level",
    "rank_corr_constant": titles.HEADINGS["rank_corr_constant"],
    "rank_corr_untrained": titles.HEADINGS["rank_corr_untrained"],
    "retraining_ratio": titles.HEADINGS["retraining_ratio"],
    "retrained": "retrained",
    "valid_nll": f"{titles.HEADINGS['best_nll_valid']} in learning",
    "steps": titles.STEPS,
    "diverged": titles.DIVERGED,
}


def _known_headings(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Without those of an exact solution where there is none."""
    known = lambda key: any((row.get(key) or {"n": 0})["n"] for row in rows)
    return {
        key: heading
        for key, heading in _HEADINGS.items()
        if not key.startswith("solved") or known(key)
    }


def _row(env: str, method: str, results: Sequence[Result]) -> dict[str, Any]:
    paper = _PAPER.get((env, method), ("–", "–", "–"))
    evaluations = [r["evaluation"] for r in results if "evaluation" in r]
    number = lambda e, key: None if math.isnan(m := mean_of(e.get(key))) else m
    row: dict[str, Any] = {
        key: over_seeds(number(e, key) for e in evaluations)
        for key in _HEADINGS
        if any(key in e for e in evaluations)
    }
    if abs(mean_of(row.get("floor"))) < 1e-6:  # There is no share of nothing.
        row["gap_percent"] = None
    ratios = row.get("retraining_ratio", {"n": 0})["n"]
    return row | {
        "method": titles.METHODS[method],
        "paper_nll": paper[0],
        "paper_return": paper[1],
        "paper_rank": paper[2],
        "retrained": None if method == "bc" else f"{ratios} of {len(results)}",
        "valid_nll": over_seeds(r["best_nll_valid"] for r in results),
        "steps": over_seeds(len(r["rows"]["step"]) for r in results),
        "diverged": sum(bool(r["diverged"]) for r in results),
    }


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    panels = figure.subplots(max(1, len(tables)), 2, squeeze=False)
    for (left, right), table in zip(panels, tables, strict=False):
        names = [row["method"] for row in table.rows]
        for axes, key, label in (
            (left, "policy_nll", "PolicyNLL, nats"),
            (right, "env_return", "true return"),
        ):
            x = list(range(len(names)))
            for index, row in enumerate(table.rows):
                figures.line(axes, index, names[index], [index], [row.get(key)])
            reference = {"policy_nll": "floor", "env_return": "expert_return"}[key]
            level = mean_of(table.rows[0].get(reference)) if table.rows else math.nan
            if math.isfinite(level):
                axes.axhline(level, color="#1b1f24", linewidth=1, linestyle=":")
            axes.set_xticks(x, names, rotation=20, fontsize=7)
            axes.set(ylabel=label, title=f"{table.title} (dotted: the expert's)")


def _notes(cells: Sequence[Cell]) -> list[str]:
    final = [cell for cell in cells if is_final(cell)]
    limits = {c.settings["config"].get("time") for c in final} - {None}
    seconds = "/".join(f"{limit:g}" for limit in sorted(limits))
    settings = [c.settings["evaluation"] for c in final]
    steps = " or ".join(f"{n:,}" for n in sorted({s["budget"] for s in settings}))
    policies = max((s["seeds"] for s in settings), default=0)
    scaled = {
        c.settings["config"]["env"]: {
            key: value
            for key, value in c.settings["config"].items()
            if key in ("inner_updates", "agent_episodes", "policy_hidden")
        }
        for c in final
        if c.settings["preset"] == "paper"
    }
    paper = "; ".join(f"{env}: {ends}" for env, ends in _PAPER_ENDS.items())
    return [
        f"Every run learns for {seconds} s (paper: 24 h), counted without the outer "
        "steps that compile a program. Processes that run at the same time share the "
        "machine; all methods are equally affected.",
        f"PolicyNLL and EnvReturn are of {policies} fresh policies for each run, "
        f"trained on the frozen reward for {steps} steps (the most where it takes long "
        "to find a way); for cloning, of the clone itself. `Solved exactly` is of the "
        "policy that the learned reward asks for, computed instead of trained.",
        f"The paper's ends of the scale: {paper}. PolicyNLL does not compare between "
        "experts: the authors' act without noise, which no soft policy can imitate, so "
        "that their floor is 0 on CartPole and does not exist on LQR; ours on the "
        "tuned rows are soft-optimal.",
        "Trials and tuned runs keep the same episodes for the evaluation, so that no "
        "trial has seen them; seeds deal out the others. Trials are judged by the "
        "likelihood of validation episodes alone.",
        f"The authors' settings for each outer step were scaled to {scaled} (theirs: "
        "500 updates of REINFORCE on CartPole, 100k steps of SAC on LQR, 1000 "
        "trajectories).",
        "RankCorr is to be read against its controls: what a constant and what "
        "untrained rewards score. The retraining ratio is defined only for runs whose "
        "fresh policies reached 95 % of the expert's return in time.",
    ]
