"""Does a learned reward train a policy in somebody else's library?

Learns rewards from the bundled demonstrations, exports them for NumPy, and lets
Stable-Baselines3's PPO (CartPole-v1; SAC for Pendulum-v1) learn from scratch on each,
beside the same algorithm on the true reward. Nothing is told about temperatures. The
interpreter must have stable-baselines3; it needs no hyperirl and no JAX:

    python benchmarks/sb3_retrain.py --python OTHER/bin/python --folder /tmp/retrain

What the folder holds already is not done again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Task(NamedTuple):
    """An environment, who learns in it, and what counts as solved."""

    gym: str
    algorithm: str
    steps: int
    every: int
    solved: float
    gamma: float | None = None  # None: the usual one of the tuned settings.


TASKS = {
    "cartpole": Task("CartPole-v1", "ppo", 100_000, 10_000, 475.0),
    "pendulum": Task("Pendulum-v1", "sac", 10_000, 1_000, -200.0),
}
WORKER = Path(__file__).with_name("_sb3_worker.py")


def exported(env: str, seed: int, folder: Path) -> Path:
    """A learned reward, for NumPy."""
    run, out = folder / f"run-{env}-{seed}", folder / f"reward-{env}-{seed}"
    hyperirl = [sys.executable, "-m", "hyperirl"]
    if not run.exists():
        options = ["--env", env, "--seed", str(seed), "--out", str(run)]
        subprocess.run([*hyperirl, "learn", *options], check=True, stdout=sys.stderr)
    if not out.exists():
        subprocess.run(
            [*hyperirl, "export", str(run), "--to", str(out)],
            check=True,
            stdout=sys.stderr,
        )
    return out


def trained(
    python: Path, task: Task, reward: Path | None, seed: int, folder: Path
) -> dict:
    """What one training came to."""
    name = "true" if reward is None else reward.name
    usual = "" if task.gamma is None else f"-gamma-{task.gamma}"
    result = folder / f"result-{task.gym}-{name}-{seed}{usual}.json"
    if not result.exists():
        what = {
            "env": task.gym,
            "algorithm": task.algorithm,
            "steps": task.steps,
            "every": task.every,
            "reward": None if reward is None else str(reward.resolve()),
            "seed": seed,
            "gamma": task.gamma,
        }
        done = subprocess.run(
            [str(python), str(WORKER), json.dumps(what)],
            check=True,
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
        result.write_bytes(done.stdout)
    found = json.loads(result.read_text())
    print(f"{name}, SB3 seed {seed}: {summary(found, task)}", file=sys.stderr)
    return found


def steps_to(found: dict, solved: float) -> int | None:
    """When the mean return was first high enough."""
    return next((steps for steps, value in found["curve"] if value >= solved), None)


def summary(found: dict, task: Task) -> str:
    first = steps_to(found, task.solved)
    words = f"solved after {first:,} steps" if first else "not solved"
    best = max(value for _, value in found["curve"])
    return f"{words}, best {best:.0f}, last {found['curve'][-1][1]:.0f}"


def run(
    python: Path, env: str, task: Task, rewards: int, seeds: int, folder: Path
) -> dict:
    folder.mkdir(parents=True, exist_ok=True)
    true = [trained(python, task, None, seed, folder) for seed in range(seeds)]
    rows = []
    for reward_seed in range(rewards):
        reward = exported(env, reward_seed, folder)
        for seed in range(seeds):
            found = trained(python, task, reward, seed, folder)
            first, base = (steps_to(x, task.solved) for x in (found, true[seed]))
            rows.append(
                {
                    "reward_seed": reward_seed,
                    "sb3_seed": seed,
                    "steps_to_solve": first,
                    "ratio": first / base if first and base else None,
                    "curve": found["curve"],
                    "seconds": found["seconds"],
                }
            )
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    return {
        "task": task._asdict(),
        "solved": sum(row["steps_to_solve"] is not None for row in rows),
        "of": len(rows),
        "solved_at_the_end": sum(r["curve"][-1][1] >= task.solved for r in rows),
        "median_ratio": statistics.median(ratios) if ratios else None,
        "learned": rows,
        "true": [
            {"sb3_seed": seed, "steps_to_solve": steps_to(found, task.solved), **found}
            for seed, found in enumerate(true)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, required=True, metavar="PATH")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR")
    parser.add_argument("--env", choices=list(TASKS), default="cartpole")
    parser.add_argument("--rewards", type=int, default=5, metavar="N")
    parser.add_argument("--seeds", type=int, default=2, metavar="N")
    parser.add_argument("--gamma", type=float, help="in place of the usual discount")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    args = parser.parse_args()
    task = TASKS[args.env]._replace(gamma=args.gamma)
    results = run(args.python, args.env, task, args.rewards, args.seeds, args.folder)
    print(f"{results['solved']} of {results['of']} solved", end="; ")
    print(f"{results['solved_at_the_end']} at the last evaluation", end="; ")
    print(f"median ratio of steps: {results['median_ratio']}")
    if args.json is not None:
        args.json.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
