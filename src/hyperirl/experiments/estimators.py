"""Estimates of the hypergradient against the exact one.

Three cross products and two Fisher matrices, by the number of trajectories and by
damping: on the paper's LQR, and on a random finite MDP. Then whole methods, each with
its own settings. What the paper does not have.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl._jax import enable_compilation_cache
from hyperirl.curvature import Absolute, Explicit
from hyperirl.environments import LQR, AbstractEnvironment, Tabular
from hyperirl.exact import lqr as exact_lqr
from hyperirl.exact import tabular as exact_tabular
from hyperirl.experiments import figures
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.numbers import over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.experiments.titles import CROSSES, METHODS
from hyperirl.hypergradient import (
    MLIRL,
    PARL,
    AbstractEstimator,
    Adjoint,
    Centred,
    Fisher,
    Penalty,
    Raw,
    RunningFisher,
    SoftBellman,
)
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import AbstractReward, QuadraticReward, TableReward
from hyperirl.rollout import rollout
from hyperirl.tasks import make
from hyperirl.trajectories import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Estimators of the hypergradient against the exact one"
ALONE = False

_PROBLEMS = ("lqr", "tabular")
_EPISODES: dict[Budget, tuple[int, ...]] = {
    "quick": (64,),
    "standard": (16, 64, 256),
    "full": (16, 64, 256, 1000),
}
_DAMPINGS = (1e-3, 1e-2, 1e-1, 1.0)
_DRAWS = {"quick": 8, "standard": 16, "full": 64}
_METHOD_DAMPING = 1e-2  # Of methods that have one: what the figure has for the others.


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """A problem, Fisher matrix and seed a cell, which goes through all the rest."""
    del done
    common = {"episodes": _EPISODES[budget], "draws": _DRAWS[budget]}
    return [
        Cell(
            "estimators",
            __name__,
            {"problem": problem, "expected": expected, "seed": seed} | common,
        )
        for problem in _PROBLEMS
        for expected in (False, True)
        for seed in range(seeds)
    ]


class _Solved(eqx.Module):
    """An inner problem with its solution, whose hypergradient is known."""

    environment: AbstractEnvironment
    reward: AbstractReward
    policy: AbstractPolicy
    expert: Trajectories
    truth: Float[Array, " params"]
    adjoint: Adjoint


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """Error, cosine and variance of each estimator, number and damping."""
    del folder
    enable_compilation_cache()
    key = jr.key(settings["seed"])
    task_key, draw_key = jr.split(key)
    task = (_lqr if settings["problem"] == "lqr" else _tabular)(task_key)
    crosses = {"raw": Raw(), "centred": Centred(), "adjoint": task.adjoint}
    rows = []
    for name in CROSSES:
        for count in settings["episodes"]:
            keys = jr.split(draw_key, settings["draws"])
            found = _measure(task, crosses[name], settings["expected"], count, keys)
            rows += [
                {"cross": name, "episodes": count, "damping": damping}
                | {key: float(value[i]) for key, value in found.items()}
                for i, damping in enumerate(_DAMPINGS)
            ]
    methods = []
    if settings["expected"]:  # They do not sample it, so once is enough.
        keys = jr.split(draw_key, settings["draws"])
        methods = [
            {"method": name, "episodes": count}
            | {k: float(v[0]) for k, v in _measure_method(task, e, count, keys).items()}
            for name, e in _methods(task).items()
            for count in settings["episodes"]
        ]
    return {"rows": rows, "methods": methods}


def _methods(task: _Solved) -> dict[str, AbstractEstimator]:
    """The neighbors, by the name of the method."""
    damping = Absolute(_METHOD_DAMPING)
    features = task.adjoint.features
    return {
        "ml-irl": MLIRL(),
        "fisher": Fisher(Explicit(damping=damping), task.adjoint, expected=True),
        "soft-bellman": SoftBellman(features),
        "nhgd": RunningFisher(task.adjoint, damping=damping),
        "parl": PARL(task.adjoint, damping=damping),
        "penalty": Penalty(features, damping=damping),
    }


@eqx.filter_jit
def _measure_method(
    task: _Solved, estimator: AbstractEstimator, count: int, keys
) -> dict[str, Array]:
    """Over draws of trajectories: relative to the exact one."""

    def draw(key):
        agent = rollout(task.environment, task.policy, count, key=key)
        h = estimator(task.policy, task.reward, task.expert, agent, make_problem())
        return ravel_pytree(h.h)[0].astype(jnp.float64)

    return _errors(jax.lax.map(draw, keys)[:, None], task.truth)


@eqx.filter_jit
def _measure(
    task: _Solved, cross, expected: bool, count: int, keys
) -> dict[str, Array]:
    """Over draws of trajectories, for each damping: relative to the exact one."""

    def draw(key):
        agent = rollout(task.environment, task.policy, count, key=key)

        def estimate(damping):
            estimator = Fisher(Explicit(damping=damping), cross, expected=expected)
            h = estimator(task.policy, task.reward, task.expert, agent, make_problem())
            return ravel_pytree(h.h)[0].astype(jnp.float64)

        return jax.lax.map(estimate, jnp.asarray(_DAMPINGS))

    return _errors(jax.lax.map(draw, keys), task.truth)


def _errors(
    h: Float[Array, "draws settings params"], truth: Float[Array, " params"]
) -> dict[str, Float[Array, " settings"]]:
    norm = jnp.linalg.norm(truth)
    cosines = h @ truth / (jnp.linalg.norm(h, axis=-1) * norm)
    mean = jnp.mean(h, axis=0)
    spread = jnp.sum(jnp.var(h, axis=0, ddof=1), axis=-1)
    error = jnp.linalg.norm(h - truth[None, None, :], axis=-1) / norm
    return {
        "cosine": jnp.mean(cosines, axis=0),
        "relative_error": jnp.mean(error, axis=0),
        "relative_variance": spread / norm**2,
        "length": jnp.linalg.norm(mean, axis=-1) / norm,
    }


def _lqr(key) -> _Solved:
    """The paper's system with a wrong reward, at the exact policy for it."""
    expert_key, state_key, action_key = jr.split(key, 3)
    lqr, problem = LQR(), make_problem()
    solve = eqx.filter_jit(lambda reward: _single(_riccati(lqr, reward, problem)))
    expert = rollout(lqr, solve(exact_lqr.true_reward(lqr)), 32, key=expert_key)
    root = lambda size, key: (
        0.7 * jnp.eye(size, dtype=jnp.float32)
        + 0.1 * jr.normal(key, (size, size), jnp.float32)
    )
    reward = QuadraticReward(root(4, state_key), root(2, action_key))
    seen = exact_lqr.demo_moments(expert, problem.discount)
    truth = eqx.filter_jit(exact_lqr.hypergradient)(lqr, reward, problem, seen)
    features = random_features(
        input_normalizer(expert), lqr.action_space, key=key, num_units=0
    )
    flat = ravel_pytree(truth)[0]
    return _Solved(lqr, reward, solve(reward), expert, flat, Adjoint(features))


def _riccati(lqr, reward, problem):
    return exact_lqr.soft_optimal_policy(lqr, reward, problem)


def _tabular(key) -> _Solved:
    """A random MDP with a random reward table, at the exact policy for it."""
    expert_key, reward_key = jr.split(key)
    seed = int(jr.randint(key, (), 0, 2**20))
    mdp, problem = make("tabular", seed=seed).environment, make_problem()
    assert isinstance(mdp, Tabular)
    solve = eqx.filter_jit(exact_tabular.soft_optimal_policy)
    expert = rollout(
        mdp, _single(solve(mdp, TableReward(mdp.rewards), problem)), 32, key=expert_key
    )
    size = mdp.rewards.shape
    reward = TableReward(0.1 * jr.normal(reward_key, size, jnp.float32))
    seen = exact_tabular.demo_weights(expert, problem.discount, size[1])
    exact = eqx.filter_jit(exact_tabular.hypergradient)
    truth = exact(mdp, reward.table, problem, seen)
    features = random_features(
        input_normalizer(expert),
        mdp.action_space,
        key=key,
        num_units=0,
        polynomial=1,
    )
    policy = _single(solve(mdp, reward, problem))
    return _Solved(mdp, reward, policy, expert, truth.reshape(-1), Adjoint(features))


def _single(tree):
    """In `float32`, like everything that is sampled."""
    cast = lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x
    return jax.tree.map(cast, tree)


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """A table for each problem: cosine, error and variance."""
    tables = [_table(problem, cells, done) for problem in _PROBLEMS]
    whole = [_method_table(problem, cells, done) for problem in _PROBLEMS]
    notes = [
        "Truth: the derivative of the demonstrations' likelihood through the exact "
        "solution of the inner problem, by autodiff in float64. The policy is exact "
        "too, so all that differs is the estimate from trajectories.",
        "Relative variance: E|h − E h|² / |truth|² over draws of trajectories. Damping "
        "shortens h much more than it turns it: the cosine is what clipping or Adam "
        "make use of.",
        f"Whole methods: a single step that remembers nothing, damping "
        f"{_METHOD_DAMPING:g} where there is one. NHGD and the penalty method are made "
        "for many steps, and come closer with them.",
    ]
    draw = lambda figure: _draw(figure, tables)
    return Outcome([*tables, *whole], draw, (11.0, 6.0), notes)


_MEASURED = {
    "cosine": "cosine to the truth",
    "relative_error": "relative error",
    "relative_variance": "relative variance",
    "length": "length of E h over the truth's",
}
_TITLES = {"lqr": "The paper's LQR", "tabular": "A random finite MDP"}


def _method_table(problem: str, cells: Sequence[Cell], done: Done) -> Table:
    """Whole methods: what each makes of the same trajectories in one step."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for cell in cells:
        if cell.id in done and cell.settings["problem"] == problem:
            for row in done[cell.id]["methods"]:
                found.setdefault((row["method"], row["episodes"]), []).append(row)
    rows = [
        {"method": METHODS[method], "episodes": episodes}
        | {name: over_seeds(row[name] for row in same) for name in _MEASURED}
        for (method, episodes), same in found.items()
    ]
    headings = {"method": "method", "episodes": "trajectories"} | _MEASURED
    return Table(f"{_TITLES[problem]}: whole methods", headings, rows)


def _table(problem: str, cells: Sequence[Cell], done: Done) -> Table:
    found: dict[tuple, list[dict[str, Any]]] = {}
    for cell in cells:
        settings = cell.settings
        if cell.id not in done or settings["problem"] != problem:
            continue
        fisher = "expected" if settings["expected"] else "sampled"
        for row in done[cell.id]["rows"]:
            key = (row["cross"], fisher, row["episodes"], row["damping"])
            found.setdefault(key, []).append(row)
    order = lambda key: (CROSSES.index(key[0]), *key[1:])
    rows = [
        dict(zip(("cross", "fisher", "episodes", "damping"), key, strict=True))
        | {name: over_seeds(row[name] for row in found[key]) for name in _MEASURED}
        for key in sorted(found, key=order)
    ]
    headings = {
        "cross": "cross product",
        "fisher": "Fisher",
        "episodes": "trajectories",
        "damping": "λ",
    } | _MEASURED
    return Table(_TITLES[problem], headings, rows)


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    grid = figure.subplots(len(tables), 3, squeeze=False)
    for panels, table in zip(grid, tables, strict=True):
        counts = sorted({row["episodes"] for row in table.rows})
        for axes, x, value, at, words in zip(
            panels,
            ("episodes", "damping", "episodes"),
            ("cosine", "cosine", "relative_variance"),
            ({"damping": 1e-2}, {"episodes": 64}, {"damping": 1e-2}),
            ("λ = 0.01", "64 trajectories", "λ = 0.01"),
            strict=True,
        ):
            for index, cross in enumerate(CROSSES):
                fixed = at | {"cross": cross, "fisher": "sampled"}
                rows = [r for r in table.rows if fixed.items() <= r.items()]
                if rows:
                    values = [row[value] for row in rows]
                    figures.line(axes, index, cross, [row[x] for row in rows], values)
            name = {"episodes": "trajectories", "damping": "damping λ"}[x]
            axes.set(xscale="log", xlabel=f"{name} ({words})", title=table.title)
            if x == "episodes":
                axes.set_xticks(counts, [str(count) for count in counts])
                axes.minorticks_off()
            if value == "cosine":
                axes.set(ylabel="cosine to the truth", ylim=(-0.4, 1.05))
            else:
                axes.set(ylabel="relative variance", yscale="log")
    grid[0][0].legend()
