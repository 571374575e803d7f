"""Where does the implicit hypergradient win over expert minus agent?

Both follow the likelihood if demonstrations abound, start where the task does, and the
policy class holds the soft-optimal policies. Where one of these fails, ML-IRL follows
something else: the expert's visits less the agent's. Cases, all on the paper's LQR:

- few demonstrations: 4 or 64 of them to learn from;
- other starts: the expert was dropped four times as far out along some directions;
- a restricted class: a policy network with two hidden units, trained by PPO.

In the first two the inner problem is solved exactly, and the numbers are the exact
expected NLL of the expert, discounted and where the task starts, above its least. In
the third it is the NLL of held-out episodes above the expert's own, with cloning in the
same class beside it. The protocol is fixed; no seed is tuned.

    python benchmarks/fisher_or_ml_irl.py --quick
    python benchmarks/fisher_or_ml_irl.py --json fisher_or_ml_irl.json
"""

import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import dataclasses
import math
import statistics

import _timing
from hyperirl import demos, exact
from hyperirl._jax import enable_compilation_cache
from hyperirl.demos import Demos
from hyperirl.environments import LQR
from hyperirl.experiments.numbers import over_seeds
from hyperirl.learning import Diverged, learn
from hyperirl.problem import problem

METHODS = "fisher", "ml-irl"
FAR = [[4.0, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 0.25, 0], [0, 0, 0, 2.0]]
EXACT = dict(inner="exact", adaptive=False)


def collected(num_train: int, seed: int, *, far: bool = False) -> Demos:
    """So many that `num_train` are left to learn from; they claim the usual start."""
    options = {"initial_root": FAR} if far else {}
    made = demos.collect("lqr", -(-num_train * 10 // 7), seed=seed, options=options)
    return dataclasses.replace(
        made, provenance=dataclasses.replace(made.provenance, options={})
    )


def exact_excess(reward) -> float:
    """`E sum_t gamma^t KL(expert, learned)` over the expert's own visits."""
    lqr, settings = LQR(), problem()
    expert = exact.lqr.soft_optimal_policy(lqr, exact.lqr.true_reward(lqr), settings)
    visits = exact.lqr.moments(lqr, expert, settings.discount)
    learned = exact.lqr.soft_optimal_policy(lqr, reward, settings)
    nll = lambda policy: float(exact.lqr.negative_log_likelihood(policy, visits))
    return nll(learned) - nll(expert)


def run(case: str, num_train: int, method: str, seed: int, **settings) -> dict:
    """One number of one run, and how long it took.

    A run that diverges is judged by its best held-out step, where that is the measure.
    """
    restricted = case == "restricted class"
    given = collected(num_train, seed, far=case == "other starts")
    settings |= dict(policy_hidden=(2,)) if restricted else EXACT
    rows, reward = [], None
    try:
        common = dict(method=method, seed=seed, on_step=rows.append)
        learned = learn("lqr", given, **common, **settings).reward
        reward = None if learned is None else learned.soft
    except Diverged as error:
        print(error)
    last = rows[-1]
    if restricted:
        excess = last["best_nll_valid"] - last["floor_valid"]
    else:
        excess = math.nan if reward is None else exact_excess(reward)
    return {
        "case": case,
        "demos": num_train,
        "method": method,
        "seed": seed,
        "excess_nll": excess,
        "diverged": reward is None and method != "bc",
        "steps": last["step"],
        "seconds": last["seconds"],
    }


def row(runs: list[dict]) -> dict:
    """Mean and Student's 95 % interval over the seeds, and the median."""
    found = over_seeds(one["excess_nll"] for one in runs)
    seconds = statistics.median(one["seconds"] for one in runs)
    found["median"] = statistics.median(one["excess_nll"] for one in runs)
    found["diverged"] = sum(one["diverged"] for one in runs)
    names = {name: runs[0][name] for name in ("case", "demos", "method")}
    return names | found | {"seconds": seconds}


def main() -> None:
    args = _timing.arguments(__doc__.splitlines()[0])
    enable_compilation_cache()
    seeds = range(1 if args.quick else 5)
    cases = [("few demonstrations", n, METHODS) for n in (4, 64)]
    cases += [("other starts", 64, METHODS)]
    cases += [("restricted class", 64, (*METHODS, "bc"))]
    if args.quick:
        cases = cases[:1]
    runs, rows = [], []
    print(
        f"{'case':<20}{'demos':>6} {'method':<8}{'excess NLL':>10}"
        f"{'95 % interval':>22}{'seconds':>9}"
    )
    for case, num_train, methods in cases:
        for method in methods:
            new = [run(case, num_train, method, seed) for seed in seeds]
            runs, rows = runs + new, [*rows, row(new)]
            last = rows[-1]
            interval = "" if args.quick else "{low:.3f} to {high:.3f}".format(**last)
            print(
                f"{case:<20}{num_train:>6} {method:<8}{last['mean']:>10.3f}"
                f"{interval:>22}{last['seconds']:>9.1f}",
                flush=True,
            )
            _timing.write({"runs": runs, "rows": rows}, args.json)
    first = {r["method"]: r["mean"] for r in rows[:2]}
    print(
        f"With {rows[0]['demos']} demonstrations ML-IRL's excess NLL is "
        f"{first['ml-irl'] / first['fisher']:.1f} times that of fisher."
    )


if __name__ == "__main__":
    main()
