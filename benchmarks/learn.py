"""Does a run with no options learn a reward that explains the demonstrations?

For each environment and seed: held-out NLL against the expert's own, the outer steps
and seconds until the gap was first within 1.5 %, and seconds a step after compilation.
Then fresh policies are trained on the frozen reward: their NLL on test episodes, which
nothing has seen before, and their true return; also the hard way, without entropy and
from the task's own starts. The protocol is fixed; no seed is tuned.

    python benchmarks/learn.py --quick
    python benchmarks/learn.py --json learn.json
"""

import argparse
import json
import statistics

from hyperirl.learning import Result, evaluate, learn
from hyperirl.tasks import make

LIMIT = 1.5  # Percent of the floor.
FRESH = 2  # Policies for each reward...
BUDGET = 2_000_000  # ...and environment steps for each; more if the task needs more.


def fresh(result: Result, budget: int) -> dict:
    """Mean return and NLL gap of policies trained from scratch on the reward."""
    found = evaluate(result, seeds=FRESH, budget=budget, transfer=False, progress=False)
    return {
        "fresh_gap_percent": found["gap_percent"]["mean"],
        "fresh_return": found["env_return"]["mean"],
        "hard_return": found["hard_return"]["mean"],
        "expert_return": found["expert_return"]["mean"],
        "retraining_ratio": (found.get("retraining_ratio") or {}).get("mean"),
    }


def one(env: str, method: str, seed: int, budget: int, **settings) -> dict:
    """The headline numbers of one run."""
    result = learn(env, method=method, seed=seed, progress=False, **settings)
    rows = result.metrics
    last = rows[-1]
    floor = last["floor_valid"]
    percent = lambda nll: 100 * (nll - floor) / abs(floor)
    reached = next((r for r in rows if percent(r["best_nll_valid"]) <= LIMIT), None)
    later = [row["step_seconds"] for row in rows[1:]] or [rows[0]["step_seconds"]]
    return {
        "env": env,
        "method": method,
        "seed": seed,
        "floor": floor,
        "best_nll": last["best_nll_valid"],
        "gap_percent": percent(last["best_nll_valid"]),
        "rank_corr": last.get("rank_corr"),
        "true_return": last.get("true_return"),
        "steps_to_limit": reached and reached["step"],
        "seconds_to_limit": reached and reached["seconds"],
        "seconds": last["seconds"],
        "compile_seconds": rows[0]["step_seconds"] - statistics.median(later),
        "step_seconds": statistics.median(later),
    } | ({} if result.reward is None else fresh(result, budget))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short run")
    parser.add_argument("--json", help="write all numbers to this file")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--envs", nargs="+", default=["cartpole", "lqr"])
    parser.add_argument("--methods", nargs="+", default=["fisher"])
    options = parser.parse_args()
    settings, budget = {}, BUDGET
    if options.quick:
        options.envs, options.seeds, settings = ["cartpole"], 1, {"steps": 15}
        budget = BUDGET // 10
    runs = []
    for env in options.envs:
        for method in options.methods:
            for seed in range(options.seeds):
                steps = budget if options.quick else max(budget, make(env).budget)
                run = one(env, method, seed, steps, **settings)
                runs.append(run)
                print(json.dumps(run), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"runs": runs}, file)
    gap = statistics.mean(run["gap_percent"] for run in runs)
    print(
        f"held-out NLL is {gap:.2f} % above the expert's own, mean of {len(runs)} runs"
    )


if __name__ == "__main__":
    main()
