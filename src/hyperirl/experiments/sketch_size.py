"""How large a sketch: the outer loss and the speed for explicit, SCFD and our solvers.

The paper's figure on the sketch size, at `lambda = 1e-3`. Beside the runs, one batch of
score rows is solved by every solver, to see what a sketch does to the answer: it is
nearly that of the exact solver at the damping `lambda + Delta`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from hyperirl import curvature
from hyperirl._jax import enable_compilation_cache
from hyperirl.cloning import clone
from hyperirl.experiments import figures
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.damping import SETTINGS
from hyperirl.experiments.learn import learning
from hyperirl.experiments.numbers import last_five, mean_of, over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.experiments.titles import (
    CROSSES,
    DEVIATION,
    HEADINGS,
    LOSS,
    SECONDS,
    SHORT,
    short,
)
from hyperirl.hypergradient import outer_gradient
from hyperirl.learning import set_up
from hyperirl.learning.parts import make_policy
from hyperirl.options import Options
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.scores import score_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Effect of the sketch size (LQR, λ = 0.001)"
ALONE = True  # Its runs are timed.

_DAMPING = 1e-3
# By method and sketch size.
_PAPER: dict[tuple[str, int | None], tuple[str, str]] = {
    ("explicit", None): ("219.15 ± 13.82", "1.00×"),
    ("sketch", 32): ("187.90 ± 5.22", "1.15×"),
    ("sketch", 64): ("181.70 ± 2.60", "1.17×"),
    ("sketch", 128): ("204.96 ± 14.38", "1.13×"),
    ("sketch", 256): ("194.73 ± 4.64", "0.78×"),
}
_CROSSES = CROSSES[::2]  # The paper's, and the best.
_SIZES: dict[Budget, tuple[int, ...]] = {
    "quick": (32, 256),
    "standard": (32, 64, 128, 256),
    "full": (32, 64, 128, 256),
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """Runs for each solver, cross product and seed; and one batch a seed, solved."""
    del done
    common = dict(env="lqr", expected_fisher=False, natural=False, adaptive=False)
    common |= dict(damping=_DAMPING, damping_scale="absolute") | SETTINGS[budget]
    solvers = [dict(method="explicit"), dict(method="fisher")]
    solvers += [dict(method="sketch", sketch_size=size) for size in _SIZES[budget]]
    crosses = _CROSSES if budget != "quick" else _CROSSES[:1]
    runs = [
        learning("sketch-size", common | solver | dict(cross=cross, seed=seed))
        for cross in crosses
        for solver in solvers
        for seed in range(seeds)
    ]
    hidden = (16, 16) if budget == "quick" else (64, 64)
    batch = {"hidden": hidden, "episodes": 64, "sizes": _SIZES[budget]}
    return runs + [
        Cell("sketch-size", __name__, batch | {"seed": seed}) for seed in range(seeds)
    ]


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """Every solver on the same rows, for a policy that imitates the expert."""
    del folder
    enable_compilation_cache()
    rows, g = _batch(settings)
    exact = curvature.Explicit(damping=_DAMPING)
    truth = exact(rows, g).v
    found = {}
    others: dict[str, Callable] = {
        SHORT["explicit"]: exact,
        "CG": curvature.ConjugateGradient(damping=_DAMPING),
        "CG, sketch as preconditioner": curvature.SketchPCG(damping=_DAMPING),
        "auto": curvature.Auto(damping=_DAMPING),
    }
    for name, solver in others.items():
        found[name] = _judge(solver, rows, g, truth)
    for size in settings["sizes"]:
        row = _judge(curvature.SCFD(damping=_DAMPING, size=size), rows, g, truth)
        sketch = curvature.sketch_rows(rows, size=size)
        delta, v = float(sketch.shrinkage), sketch.solve(_DAMPING, g).v
        damped = curvature.Explicit(damping=_DAMPING + delta)(rows, g).v
        row |= {
            "delta": delta,
            "damped_cosine": float(_cosine(v, damped)),
            "damped_error": float(_distance(v, damped)),
        }
        found[f"m = {size}"] = row
    return {"dim": int(rows.dim), "rows": int(rows.num_rows), "solvers": found}


def _batch(settings: Mapping[str, Any]):
    """Score rows of a clone of the expert, and the gradient on other demonstrations."""
    said = Options(seed=settings["seed"], policy_hidden=tuple(settings["hidden"]))
    setup = set_up("lqr", None, said)
    train, valid = (part.trajectories for part in setup.parts[:2])
    policy_key, clone_key, agent_key = jr.split(jr.key(settings["seed"]), 3)
    policy = make_policy(setup.config, setup.environment, train, key=policy_key)
    policy, _ = clone(policy, train, valid, key=clone_key)
    agent = rollout(setup.environment, policy, settings["episodes"], key=agent_key)
    rows = eqx.filter_jit(score_rows)(policy, agent, problem())
    return rows, eqx.filter_jit(outer_gradient)(policy, valid, problem())


def _judge(solver: Callable, rows, g, truth, repeats: int = 3) -> dict[str, float]:
    """How far from the exact answer, and how long it takes when it is compiled."""
    solution = jax.block_until_ready(solver(rows, g))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(solver(rows, g))
        seconds.append(time.perf_counter() - began)
    return {
        "error": float(_distance(solution.v, truth)),
        "cosine": float(_cosine(solution.v, truth)),
        "certificate": float(solution.info.certificate),
        "seconds": min(seconds),
    }


def _distance(v: Float[Array, " d"], truth: Float[Array, " d"]) -> Array:
    return jnp.linalg.norm(v - truth) / jnp.linalg.norm(truth)


def _cosine(v: Float[Array, " d"], truth: Float[Array, " d"]) -> Array:
    return v @ truth / (jnp.linalg.norm(v) * jnp.linalg.norm(truth))


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """The paper's table, one for each cross product, and the batch."""
    runs = [c for c in cells if c.kind != __name__ and c.id in done]
    batches = [done[c.id] for c in cells if c.kind == __name__ and c.id in done]
    tables = [_runs_table(cross, runs, done) for cross in _CROSSES]
    tables = [table for table in tables if table.rows] + [_batch_table(batches)]
    config = done[runs[0].id]["config"] if runs else {}
    draw = lambda figure: _draw(figure, tables)
    return Outcome(tables, draw, (9.0, 3.6), _notes(config))


def _runs_table(cross: str, runs: Sequence[Cell], done: Done) -> Table:
    groups: dict[tuple[str, int | None], list[Result]] = {}
    names = {}
    for cell in runs:
        config = cell.settings["config"]
        if config["cross"] == cross:
            kind = config["method"], config.get("sketch_size")
            names[kind] = short(config)
            groups.setdefault(kind, []).append(done[cell.id])
    speed = lambda results: over_seeds(r["warm_step_seconds"] for r in results)
    explicit = groups.get(("explicit", None))
    slowest = None if explicit is None else mean_of(speed(explicit))
    rows = []
    for kind, results in groups.items():
        paper = _PAPER.get(kind, ("–", "–"))
        seconds = speed(results)
        loss = over_seeds(last_five(r["rows"]["outer_loss"]) for r in results)
        rows.append(
            {
                "solver": names[kind],
                "paper": paper[0],
                "loss": loss,
                "deviation": loss["deviation"],
                "nll": over_seeds(r["best_nll_valid"] for r in results),
                "certificate": over_seeds(
                    last_five(r["rows"]["certificate"]) for r in results
                ),
                "paper_speedup": paper[1],
                "speedup": slowest / mean_of(seconds) if slowest else None,
                "seconds": seconds,
            }
        )
    headings = {
        "solver": "solver",
        "paper": f"{LOSS}, paper",
        "loss": f"{LOSS}, ours",
        "deviation": DEVIATION,
        "nll": HEADINGS["best_nll_valid"],
        "certificate": "certificate",
        "paper_speedup": "speed-up, paper",
        "speedup": "speed-up, ours",
        "seconds": SECONDS,
    }
    return Table(f"Runs with the {cross} cross product", headings, rows)


def _batch_table(batches: Sequence[Result]) -> Table:
    names = list(batches[0]["solvers"]) if batches else []
    keys = "error certificate cosine delta damped_error damped_cosine seconds".split()
    rows = [
        {"solver": name}
        | {
            key: over_seeds(batch["solvers"][name].get(key) for batch in batches)
            for key in keys
        }
        for name in names
    ]
    headings = {
        "solver": "solver",
        "error": "error of v against exact at λ",
        "certificate": "certified bound",
        "cosine": "cosine",
        "delta": "Δ",
        "damped_error": "error against exact at λ + Δ",
        "damped_cosine": "cosine to it",
        "seconds": "s / solve",
    }
    size = f"{batches[0]['rows']} rows, d = {batches[0]['dim']}" if batches else ""
    return Table(f"One batch of score rows ({size})", headings, rows)


def _draw(figure: "Figure", tables: Sequence[Table]) -> None:
    left, right = figure.subplots(1, 2)
    *runs, batch = tables
    for index, table in enumerate(runs):
        label = table.title.removeprefix("Runs with the ").removesuffix(
            " cross product"
        )
        values = [row["loss"] for row in table.rows]
        figures.bars(left, index, len(runs), label, values)
        names = [row["solver"] for row in table.rows]
        left.set_xticks(range(len(names)), names, rotation=30)
    left.set(ylabel=f"{LOSS}, nats", title="Mean of the last five steps")
    left.set_ylim(top=1.25 * left.get_ylim()[1])  # Room for the legend.
    left.legend(ncols=2, loc="upper left")
    rows = [row for row in batch.rows if row["solver"].startswith("m = ")]
    x = [int(row["solver"].removeprefix("m = ")) for row in rows]
    for index, (key, label) in enumerate(
        (
            ("certificate", "certified bound"),
            ("error", "error against exact at λ"),
            ("damped_error", "error against exact at λ + Δ"),
        )
    ):
        figures.line(right, index, label, x, [row[key] for row in rows])
    right.set(xscale="log", yscale="log", xlabel="sketch size m")
    right.set(ylabel="relative error of v", title="One batch of score rows")
    right.set_xticks(x, [str(size) for size in x])
    right.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    right.legend()


def _notes(config: Mapping[str, Any]) -> list[str]:
    get = config.get
    return [
        "The paper's numbers are of its own expert (SAC) and reward network; compare "
        "the order, not the level. Ours: the exact soft-optimal expert, "
        f"{get('reward')} reward, {get('inner')} inner solver with "
        f"{get('inner_updates')} updates a step, {get('agent_episodes')} trajectories "
        f"(paper: 1000), policy {get('policy_hidden')} (paper: 64, 64), {get('steps')} "
        "outer steps (paper: 100). Speed-ups are of whole outer steps, most of which "
        "is the inner solver.",
        "The certificate bounds the relative error of v, with what rounding may have "
        "done to the sketch; near 1 it promises nothing. Where Δ is above λ the sketch "
        "is mostly extra damping. The last columns test just that: the sketched answer "
        "against the exact one at λ + Δ.",
    ]
