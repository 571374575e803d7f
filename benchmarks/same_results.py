"""Does learning in Gymnasium's CartPole and Pendulum end where it does in our own?

Three rows a task, with the same demonstrations, settings and seeds: our compiled
environment as it is used, the same without starts in demonstrated states, and
Gymnasium's environment, which cannot start there. Rows take turns, seed by seed. Shown
are the held-out NLL above the expert's own (mean of the last ten steps, and the best),
the true return in the loop, and seconds an outer step as a ratio to our own
environment without those starts.

    python benchmarks/same_results.py --tasks cartpole --seeds 1 --steps 5
    python benchmarks/same_results.py --json same_results.json
    python benchmarks/same_results.py --usual --json same_results_usual.json
"""

import argparse
import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

from hyperirl import tasks
from hyperirl.learning import learn, set_up
from hyperirl.options import Options

TWINS = {"cartpole": "gym:CartPole-v1", "pendulum": "gym:Pendulum-v1"}


def said(task: str) -> dict[str, Any]:
    """What suits our own task, said aloud, so that its twin does the same."""
    options = dataclasses.asdict(tasks.make(task).options)
    return {name: value for name, value in options.items() if value is not None}


def usual(task: str) -> dict[str, Any]:
    """What the twin would do if nothing was said, said aloud."""
    config = set_up(TWINS[task], task, Options(temperature=said(task)["temperature"]))
    return {name: getattr(config.config, name) for name in said(task)}


def one(env: str, task: str, seed: int, steps: int, **settings: Any) -> dict:
    """The numbers of one run."""
    result = learn(env, task, seed=seed, steps=steps, progress=False, **settings)
    rows = result.metrics
    floor = rows[-1]["floor_valid"]
    percent = lambda nll: 100 * (nll - floor) / abs(floor)
    last = rows[-10:]
    return {
        "env": env,
        "demo_starts": result.config.demo_starts,
        "seed": seed,
        "steps": len(rows),
        "gap_percent": statistics.mean(percent(row["nll_valid"]) for row in last),
        "best_gap_percent": percent(rows[-1]["best_nll_valid"]),
        "true_return": statistics.mean(row["true_return"] for row in last),
        "step_seconds": statistics.median(row["step_seconds"] for row in rows[1:]),
    }


def summary(runs: list[dict]) -> dict:
    """Means over seeds, with the standard deviation between them."""
    found: dict[str, Any] = {name: runs[0][name] for name in ("env", "demo_starts")}
    for name in ("gap_percent", "best_gap_percent", "true_return", "step_seconds"):
        values = [run[name] for run in runs]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        found[name] = [statistics.mean(values), spread]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TWINS, default=list(TWINS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument(
        "--usual",
        action="store_true",
        help="settings of an unknown environment, not those that suit our own task",
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"steps": options.steps, "runs": {}, "rows": {}}
    for task in options.tasks:
        settings = usual(task) if options.usual else said(task)
        rows: list[tuple[str, dict]] = [
            (task, settings | {"demo_starts": 0.7}),
            (task, settings | {"demo_starts": 0.0}),
            (TWINS[task], settings | {"demo_starts": 0.0}),
        ]
        runs: list[list[dict]] = [[], [], []]
        for seed in range(options.seeds):
            for row, (env, settings) in zip(runs, rows, strict=True):
                row.append(one(env, task, seed, options.steps, **settings))
                print(json.dumps(row[-1]), flush=True)
        found = [summary(row) for row in runs]
        for row, ran in zip(found, runs, strict=True):
            ratios = [
                mine["step_seconds"] / ours["step_seconds"]
                for mine, ours in zip(ran, runs[1], strict=True)
            ]
            row["slower"] = statistics.median(ratios)
        result["runs"][task], result["rows"][task] = sum(runs, []), found
        print(json.dumps(found, indent=1), flush=True)
        if options.json:
            options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
