"""Which solver of (X^T X + damping I) v = g is fastest, and what error is paid?

Real score rows of random two-layer policies on CartPole and on LQR, at a temperature of
0.1 and a discount of 0.99; `g` is the gradient of the likelihood of another policy's
trajectories. Every ratio is of times measured in turns, and stands beside its error.

    python benchmarks/curvature.py --quick
    python benchmarks/curvature.py --json curvature.json --figure curvature.png
"""

import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import argparse
import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree

import _timing
from hyperirl import curvature
from hyperirl.experiments.worker import peak_megabytes
from hyperirl.networks import partition
from hyperirl.policies import mlp_policy
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.scores import score_rows
from hyperirl.tasks import make

DAMPING = 1e-2
HIDDEN = {400: 16, 5_000: 67, 20_000: 138, 100_000: 312, 1_000_000: 996}
HORIZON = 100
SOLVERS = {
    "Explicit": curvature.Explicit(damping=DAMPING),
    "Woodbury": curvature.Woodbury(damping=DAMPING),
    "Auto": curvature.Auto(damping=DAMPING),
    "SketchPCG": curvature.SketchPCG(damping=DAMPING),
    "ConjugateGradient": curvature.ConjugateGradient(damping=DAMPING),
    "SCFD": curvature.SCFD(damping=DAMPING, size=64),
    "FrequentDirections": curvature.FrequentDirections(damping=DAMPING, size=64),
    "RobustFD": curvature.RobustFrequentDirections(damping=DAMPING, size=64),
    "PaperSCFD": curvature.PaperSCFD(damping=DAMPING, size=64),
    "Neumann": curvature.Neumann(damping=DAMPING, num_terms=100),
    "KFAC": curvature.KFAC(damping=DAMPING),
    "RankOne": curvature.RankOne(damping=DAMPING),
    "Diagonal": curvature.Diagonal(damping=DAMPING),
    "Identity": curvature.Identity(damping=DAMPING),
}
STREAMING = curvature.SCFD(damping=DAMPING, size=32)
REFERENCE = curvature.SketchPCG(damping=DAMPING, tolerance=1e-9)


@dataclasses.dataclass(frozen=True)
class System:
    """Rows and right-hand side of one problem."""

    name: str
    rows: curvature.FactoredRows
    autodiff: curvature.AutodiffRows
    g: jax.Array


def build(task: str, dim: int, num_rows: int) -> System:
    """The system of a random policy with about `dim` parameters."""
    environment = make(task).environment
    policy_key, expert_key, key = jr.split(jr.key(0), 3)

    def random_policy(key):
        policy = mlp_policy(
            environment.observation_size,
            environment.action_space,
            key=key,
            hidden=(HIDDEN[dim],) * 2,
        )
        # Undo the small last layer of a fresh policy: a nearly constant policy has
        # nearly no curvature.
        weight = lambda p: p.network.layers[-1].weight
        return eqx.tree_at(weight, policy, 100 * weight(policy))

    policy, expert = random_policy(policy_key), random_policy(expert_key)
    episodes = num_rows // HORIZON
    agent_key, demo_key = jr.split(key)
    settings = problem()
    agent = rollout(environment, policy, episodes, key=agent_key, horizon=HORIZON)
    demos = rollout(environment, expert, 32, key=demo_key, horizon=HORIZON)
    rows = eqx.filter_jit(score_rows)(policy, agent, settings)
    outer = eqx.filter_jit(score_rows)(policy, demos, settings)
    g = -outer.rmv(outer.weights) / settings.temperature
    return System(task, rows, _autodiff_rows(policy, agent, rows.weights), g)


def _autodiff_rows(policy, trajectories, weights) -> curvature.AutodiffRows:
    """The fallback for policies whose layers are not known."""
    parameters, rest = partition(policy)
    flat, unravel = ravel_pytree(parameters)

    def log_probs(flat, observations, actions):
        policy = eqx.combine(unravel(flat), rest)
        return jax.vmap(policy.log_prob)(observations, actions)

    observations = trajectories.observations[:, :-1]
    observations = observations.reshape(-1, observations.shape[-1])
    actions = trajectories.actions
    actions = actions.reshape(-1, *actions.shape[2:])
    function = lambda flat, inputs: log_probs(flat, *inputs)
    return curvature.AutodiffRows(function, flat, weights, (observations, actions))


solve = eqx.filter_jit(lambda solver, rows, g: solver(rows, g))


def compare(system: System, names: list[str], repeats: int) -> list[dict]:
    """Time over that of `Explicit`, error and cosine of each solver."""
    rows, g = system.rows, system.g
    exact = np.asarray(solve(REFERENCE, rows, g.astype(jnp.float64)).v)
    compile_seconds, answers, times = {}, {}, {name: [] for name in names}
    compiled = {}
    for name in names:
        start = time.perf_counter()
        compiled[name] = solve.lower(SOLVERS[name], rows, g).compile()
        compile_seconds[name] = time.perf_counter() - start
    for _ in range(repeats):
        for name in names:
            start = time.perf_counter()
            answers[name] = compiled[name](SOLVERS[name], rows, g)
            jax.block_until_ready(answers[name].v)
            times[name].append(time.perf_counter() - start)
    results = []
    for name in names:
        pairs = zip(times["Explicit"], times[name], strict=True)
        record = {
            "task": system.name,
            "dim": rows.dim,
            "rows": rows.num_rows,
            "solver": name,
            "seconds": _timing.spread(times[name]),
            "speedup": _timing.spread([a / b for a, b in pairs]),
            "compile_seconds": compile_seconds[name],
        }
        results.append(record | quality(answers[name], exact))
        print_record(results[-1])
    return results


def quality(solution: curvature.Solution, exact: np.ndarray) -> dict:
    """How far the answer is from the exact one, and what it says of itself."""
    v = np.asarray(solution.v, np.float64)
    error = np.linalg.norm(v - exact) / np.linalg.norm(exact)
    cosine = v @ exact / (np.linalg.norm(v) * np.linalg.norm(exact))
    return {
        "picked": solution.info.name,
        "error": float(error),
        "cosine": float(cosine),
        "certificate": float(solution.info.certificate),
        "iterations": int(solution.info.iterations),
        "converged": bool(solution.info.converged),
    }


def print_record(record: dict) -> None:
    print(
        f"{record['task']:>14} d={record['dim']:<7} n={record['rows']:<6}"
        f"{record['solver']:<19}{record['seconds']['median']:9.3f} s"
        f"{record['speedup']['median']:9.2f}x  error {record['error']:.1e}"
        f"  cosine {record['cosine']:.4f}",
        flush=True,
    )


def products(system: System, repeats: int) -> dict:
    """`mv` and `rmv` through factors, against forward and reverse differentiation.

    One after the other, as a solver needs them: in one program they would run at the
    same time, and for each other's cache. Then `X^T X v`, where one feeds the other.
    """
    mv = eqx.filter_jit(lambda rows, v: rows.mv(v))
    rmv = eqx.filter_jit(lambda rows, y: rows.rmv(y))
    normal_mv = eqx.filter_jit(lambda rows, v: rows.normal_mv(v))
    v, y = system.g, jnp.ones((system.rows.num_rows,), system.g.dtype)
    runs = {}
    for kind, rows in (("factored", system.rows), ("autodiff", system.autodiff)):
        runs[f"{kind} mv"] = lambda rows=rows: mv(rows, v)
        runs[f"{kind} rmv"] = lambda rows=rows: rmv(rows, y)
        runs[f"{kind} normal_mv"] = lambda rows=rows: normal_mv(rows, v)
    _, times = _timing.interleaved(runs, repeats)

    def ratio(*names: str) -> dict[str, float]:
        total = lambda kind, i: sum(times[f"{kind} {name}"][i] for name in names)
        return _timing.spread(
            [total("autodiff", i) / total("factored", i) for i in range(repeats)]
        )

    record = {
        "task": system.name,
        "dim": system.rows.dim,
        "rows": system.rows.num_rows,
        "ratio": ratio("mv", "rmv"),
        "normal_ratio": ratio("normal_mv"),
    }
    print(
        f"{system.name:>9} n={system.rows.num_rows}: factored mv + rmv "
        f"{record['ratio']['median']:.1f}x the fallback, X^T X v "
        f"{record['normal_ratio']['median']:.1f}x"
    )
    return record


def sketch_rate(system: System, repeats: int) -> dict:
    """The sketch against the thin SVD, and its share of the rate of a plain product.

    Counted are the products of a compression of plain rows: the Gram matrix of m + b
    rows and m combinations of them. Rows in factors get by with half of them, as the
    Gram matrix of new rows costs their factors only; `share_computed` counts the rest.
    """
    n = 2048
    square = jr.normal(jr.key(0), (n, n), jnp.float32)
    matmul = jax.jit(lambda a: a @ a)
    rows, g = system.rows, system.g
    runs = {
        "gemm": lambda: matmul(square),
        "SCFD": lambda: solve(SOLVERS["SCFD"], rows, g),
        "PaperSCFD": lambda: solve(SOLVERS["PaperSCFD"], rows, g),
    }
    _, times = _timing.interleaved(runs, repeats)
    m = 64
    b = len(curvature.empty_sketch(rows.dim, size=m).buffer)
    blocks = rows.num_rows // b
    flops = 2 * rows.dim * ((m + b) ** 2 + m * (m + b)) * blocks
    shares = [
        (flops / sketch) / (2 * n**3 / gemm)
        for sketch, gemm in zip(times["SCFD"], times["gemm"], strict=True)
    ]
    computed = 2 * m / (2 * m + b)  # Kept rows times all, twice.
    pairs = zip(times["PaperSCFD"], times["SCFD"], strict=True)
    ratio = [a / b for a, b in pairs]
    print(
        f"{system.name:>9} d={rows.dim}: SCFD {statistics.median(ratio):.1f}x faster "
        f"than the thin SVD, at {statistics.median(shares):.0%} of the GEMM rate"
    )
    return {
        "dim": rows.dim,
        "rows": rows.num_rows,
        "over_thin_svd": _timing.spread(ratio),
        "share_of_gemm_rate": _timing.spread(shares),
        "share_computed": _timing.spread([computed * share for share in shares]),
        "gemm_gflops": _timing.spread([2e-9 * n**3 / t for t in times["gemm"]]),
    }


def sizes(system: System, values: list[int]) -> list[dict]:
    """Error and certificate of sketches of growing size."""
    rows, g = system.rows, system.g
    exact = np.asarray(solve(REFERENCE, rows, g.astype(jnp.float64)).v)
    results = []
    for size in values:
        solution = solve(curvature.SCFD(damping=DAMPING, size=size), rows, g)
        record = {"task": system.name, "dim": rows.dim, "size": size}
        results.append(record | quality(solution, exact))
        print(
            f"{system.name:>9} m={size:<4} error {results[-1]['error']:.3f} certified "
            f"{results[-1]['certificate']:.3f} cosine {results[-1]['cosine']:.3f}"
        )
    return results


def peak_memory(solver: str, dim: int, num_rows: int) -> dict:
    """Largest resident set of a fresh process that builds the rows and solves once."""
    command = [sys.executable, __file__, "--memory", solver, str(dim), str(num_rows)]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    record = json.loads(output.stdout.splitlines()[-1])
    print(f"d={dim} n={num_rows} {solver}: {record['peak_mb']:.0f} MB", flush=True)
    return record


def measure_memory(solver: str, dim: int, num_rows: int) -> None:
    """What the fresh process does; prints one line of JSON."""
    system = build("cartpole-fixed", dim, num_rows)
    record = {"solver": solver, "dim": dim, "rows": num_rows}
    if solver != "rows only":
        chosen = STREAMING if solver == "SCFD(32)" else SOLVERS[solver]
        run = lambda: solve(chosen, system.rows, system.g)
        record["first_call_seconds"] = _timing.seconds(run)
        if solver == "SCFD(32)":
            record["seconds"] = _timing.seconds(run)
    print(json.dumps(record | {"peak_mb": peak_megabytes()}))


def draw(results: dict, path: Path) -> None:
    """Time against d, and error against m with the certificate over it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    records = [r for r in results["solvers"] if r["task"] == "cartpole-fixed"]
    most = max(r["rows"] for r in records)
    for name in dict.fromkeys(r["solver"] for r in records):
        points = sorted(
            (r["dim"], r["seconds"]["median"])
            for r in records
            if r["solver"] == name and r["rows"] == most
        )
        strong = name in ("Explicit", "Auto", "SCFD", "ConjugateGradient")
        left.loglog(
            *zip(*points, strict=True),
            marker="o",
            lw=2 if strong else 1,
            alpha=1 if strong else 0.6,
            label=name,
        )
    left.set(
        xlabel="parameters d",
        ylabel="seconds a solve",
        title=f"CartPole, n = {most}, damping {DAMPING}",
    )
    left.legend(fontsize=7, ncols=2)
    for task in dict.fromkeys(r["task"] for r in results["sizes"]):
        points = [r for r in results["sizes"] if r["task"] == task]
        m = [r["size"] for r in points]
        (line,) = right.loglog(
            m, [r["error"] for r in points], marker="o", label=f"{task}: error"
        )
        right.loglog(
            m,
            [r["certificate"] for r in points],
            ls="--",
            color=line.get_color(),
            label=f"{task}: certificate",
        )
    right.set(
        xlabel="sketch size m",
        ylabel="relative error of v",
        title=f"SCFD, d about {results['sizes'][0]['dim']}",
    )
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


CORE = ["Explicit", "Auto", "SketchPCG", "ConjugateGradient", "SCFD"]
ROUGH = ["FrequentDirections", "RobustFD", "Neumann", "KFAC", "RankOne", "Diagonal"]


def run(quick: bool, save) -> dict:
    """All measurements; `save` is called whenever there are new ones."""
    results: dict = {
        "damping": DAMPING,
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "jax": jax.__version__,
        },
        "solvers": [],
        "products": [],
        "sketch": [],
        "sizes": [],
        "memory": [],
    }
    cartpole, lqr = "cartpole-fixed", "lqr"
    if quick:
        system = build(cartpole, 400, 4000)
        results["solvers"] += compare(system, [*CORE, "KFAC", "Diagonal"], 3)
        results["products"].append(products(system, 3))
        results["sketch"].append(sketch_rate(system, 2))
        results["sizes"] += sizes(system, [16, 64])
        results["memory"].append(peak_memory("Auto", 400, 4000))
        save(results)
        return results
    for task, dim, num_rows, names, repeats in (
        (cartpole, 400, 4000, [*CORE, "Woodbury"], 3),
        (cartpole, 400, 32_000, CORE, 3),
        (cartpole, 5000, 4000, [*CORE, "Woodbury"], 3),
        (cartpole, 5000, 32_000, [*CORE, *ROUGH, "Identity"], 3),
        (lqr, 400, 32_000, CORE, 3),
        (lqr, 5000, 32_000, CORE, 3),
        (cartpole, 20_000, 32_000, CORE, 1),
    ):
        system = build(task, dim, num_rows)
        results["solvers"] += compare(system, names, repeats)
        save(results)
        if dim == 5000:
            results["products"].append(products(system, 15))
        if dim == 5000 and num_rows == 4000:
            results["sketch"].append(sketch_rate(system, 7))
        if dim == 5000 and (task == lqr or num_rows == 32_000):
            results["sizes"] += sizes(system, [8, 16, 32, 64, 128, 256, 512])
        save(results)
    results["sketch"].append(sketch_rate(build(cartpole, 20_000, 4000), 3))
    save(results)
    for solver, dim in (
        *((s, d) for d in (5000, 20_000) for s in ("rows only", *MEASURED)),
        *((s, d) for d in (100_000, 1_000_000) for s in ("rows only", "SCFD(32)")),
    ):
        results["memory"].append(peak_memory(solver, dim, 4000))
        save(results)
    return results


MEASURED = ("Auto", "SCFD(32)", "Explicit")


def headline(results: dict) -> str:
    record = max(
        (r for r in results["solvers"] if r["solver"] == "Auto"),
        key=lambda r: (r["dim"], r["rows"]),
    )
    ratio = record["speedup"]
    return (
        f"Auto ({record['picked']}) is {ratio['median']:.1f}x faster than Explicit "
        f"({ratio['min']:.1f} to {ratio['max']:.1f}) at d = {record['dim']}, "
        f"n = {record['rows']}, damping {DAMPING}, with an error of v of "
        f"{record['error']:.1e}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw them")
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        solver, dim, num_rows = options.memory
        measure_memory(solver, int(dim), int(num_rows))
        return
    results = run(options.quick, lambda results: _timing.write(results, options.json))
    if options.figure is not None:
        draw(results, options.figure)
    print(headline(results))


if __name__ == "__main__":
    main()
