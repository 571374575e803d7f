"""Rewards learned in one world, policies trained in another. The paper only hopes so.

Policies are made where the dynamics have changed: for rewards that were learned before
the change, and for the true one; by training, or exactly where there is a closed form.
A clone of the expert is put there as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import jax.random as jr

from hyperirl._jax import enable_compilation_cache
from hyperirl.evaluation import (
    FreshTraining,
    measure,
    solved_policy,
    train_fresh,
    usual_policy,
)
from hyperirl.experiments import figures, titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.numbers import over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.experiments.tuned import (
    NAME,
    TEST_SEED,
    fresh_steps,
    is_final,
    tuned_cells,
)
from hyperirl.inner import true_reward
from hyperirl.learning import set_up
from hyperirl.learning.evaluating import subject_of
from hyperirl.options import Method, Options
from hyperirl.runs import RunFolder
from hyperirl.tasks import make

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Transfer: learned before the dynamics changed"
ALONE = False

_METHODS: tuple[Method, ...] = ("fisher", "ml-irl", "bc")
_TITLES = {method: titles.METHODS[method] for method in _METHODS}
_TITLES |= {"bc": "clone, as it is", "true": "true reward"}
_ENVIRONMENTS: dict[Budget, tuple[str, ...]] = {
    "quick": ("lqr",),
    "standard": ("lqr", "cartpole"),
    "full": ("lqr", "cartpole", "cartpole-fixed"),
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """Tuned runs, shared with `final-performance`; then one cell for each of them."""
    wanted: list[Cell] = []
    for env in _ENVIRONMENTS[budget]:
        runs = tuned_cells(env, _METHODS, budget, seeds, done)
        wanted += runs
        common = {"env": env, "steps": fresh_steps(make(env), budget)}
        for run in runs:
            if is_final(run) and run.id in done:
                config = run.settings["config"]
                own = {key: config[key] for key in ("method", "seed")}
                settings = common | own | {"run": run.id}
                wanted.append(Cell("transfer", __name__, settings))
        wanted += [
            Cell("transfer", __name__, common | {"method": "true", "seed": seed})
            for seed in range(seeds)
        ]
    return wanted


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """The true return in every world, of a policy trained there."""
    enable_compilation_cache()
    seed, training = settings["seed"], FreshTraining(settings["steps"])
    clone, policy_for = None, usual_policy
    if settings["method"] == "true":
        said = Options(seed=seed, test_seed=TEST_SEED)
        subject = set_up(settings["env"], None, said)
        problem, reward = subject.config.problem, true_reward(subject.environment)
    else:
        runs = folder.parents[2] / NAME / "runs"
        subject = subject_of(RunFolder.open(runs / settings["run"]))
        problem, policy_for = subject.problem, subject.policy_for
        if subject.reward is None:
            reward, clone = true_reward(subject.environment), subject.policy
        else:
            reward = subject.reward.soft
    home, test = subject.environment, subject.parts.test.trajectories
    key, found = jr.key(seed), {}
    worlds = {"unchanged": home, **subject.task.variants(home)}
    for name, world in worlds.items():
        policy = clone or solved_policy(world, reward, problem)
        if policy is not None:
            judged = measure(world, policy, test, key=key, training=training)
            returned = judged[0]
        else:
            returned = train_fresh(
                world,
                reward,
                problem,
                test,
                key=key,
                starts=subject.parts.train.trajectories,
                training=training,
                policy_for=policy_for,
            ).returns
        assert returned is not None  # All of these tasks know their true reward.
        found[name] = float(jnp.mean(returned))
    return {"returns": found}


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """A table for each environment: a row a method, a column a world."""
    tables = []
    own = [c for c in cells if c.kind == __name__ and c.id in done]
    for env in dict.fromkeys(cell.settings["env"] for cell in own):
        rows, worlds = [], {}
        for method, title in _TITLES.items():
            results = [
                done[c.id]["returns"]
                for c in own
                if (c.settings["env"], c.settings["method"]) == (env, method)
            ]
            if results:
                worlds = {name: name for name in results[0]}
                means = {w: over_seeds(r[w] for r in results) for w in worlds}
                rows.append({"method": title} | means)
        headings = {"method": "trained on"} | worlds
        tables.append(Table(f"True return, {env}", headings, rows))
    steps = {cell.settings["steps"] for cell in own}
    notes = [
        "The paper motivates inverse reinforcement learning with transfer and does not "
        "measure it, so there is no number to compare with.",
        f"Each policy is made from scratch in the changed world: on LQR the exact one, "
        f"elsewhere by {max(steps, default=0):,} steps of training. The clone stays as "
        "it is. On LQR less negative is better; on CartPole 500 is the most.",
    ]
    draw = lambda figure: _draw(figure, tables)
    return Outcome(tables, draw, (9.0, 3.2 * max(1, len(tables))), notes)


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    panels = figure.subplots(max(1, len(tables)), 1, squeeze=False)[:, 0]
    for axes, table in zip(panels, tables, strict=False):
        worlds = [key for key in table.headings if key != "method"]
        for index, row in enumerate(table.rows):
            values = [row[world] for world in worlds]
            figures.bars(axes, index, len(table.rows), row["method"], values)
        axes.set_xticks(range(len(worlds)), worlds)
        axes.set(ylabel="true return", title=table.title)
        if axes.get_ylim()[0] < 0:  # Costs have no end.
            figures.compress_beyond(axes, 100.0)
        axes.legend(
            fontsize=7, frameon=True, framealpha=0.95, ncols=4, loc="lower left"
        )
