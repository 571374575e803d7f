"""What do BC, GAIL and AIRL of `imitation` learn in the time that we take?

Everybody gets the bundled demonstrations (all but the test episodes), the same number
of seconds and one core. Compiling is not counted. Then every reward is frozen, and
Stable-Baselines3 trains a fresh policy on it: PPO on CartPole, SAC on Pendulum. Two
rewards that nobody learned are there to compare with: the true one, and a constant. The
interpreter must have imitation 1.0.1 and stable-baselines3; it needs no hyperirl:

    python benchmarks/peers.py --python OTHER/bin/python --folder /tmp/peers

What the folder holds already is not done again.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from hyperirl import demos
from hyperirl.demos.splitting import split_demos

TASKS = {
    "cartpole": {
        "env": "CartPole-v1",
        "algorithm": "ppo",
        "steps": 50_000,
        "every": 10_000,
    },
    "pendulum": {
        "env": "Pendulum-v1",
        "algorithm": "sac",
        "steps": 6_000,
        "every": 1_000,
    },
}
METHODS = "hyperirl", "airl", "gail", "bc", "true", "constant"
WORKER = Path(__file__).with_name("_peers_worker.py")
DISCOUNT = 0.99


def written(parts, path: Path) -> str:
    """Episodes in plain arrays, all but the padding."""
    flats = [demos.to_flat(part) for part in parts]
    names = "observations", "actions", "lengths", "terminated"
    arrays = {n: np.concatenate([np.asarray(f[n]) for f in flats]) for n in names}
    np.savez(path, **arrays)
    return str(path.resolve())


def exported(name: str, seed: int, seconds: float, folder: Path) -> tuple[Path, dict]:
    """Our reward and policy, learned in the time on one core, for NumPy."""
    run, out = folder / f"run-{name}-{seed}", folder / f"export-{name}-{seed}"
    hyperirl = [sys.executable, "-m", "hyperirl"]
    effort = folder / f"effort-{name}-{seed}.json"
    if not out.exists():
        options = ["--env", name, "--seed", str(seed), "--time", str(seconds)]
        learn = [*hyperirl, "learn", *options, "--out", str(run)]
        before = of_children()
        on_one_core(learn, stdout=sys.stderr)
        # With the start and the compiling, which the seconds do not count.
        spent = {"processor_seconds": of_children() - before}
        steps = len((run / "metrics.jsonl").read_text().splitlines())
        effort.write_text(json.dumps(spent | {"outer_steps": steps}))
        export = [*hyperirl, "export", str(run), "--to", str(out)]
        on_one_core(export, stdout=sys.stderr)
    return out.resolve(), json.loads(effort.read_text())


def of_children() -> float:
    """The processor time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def on_one_core(command, **options):
    """Runs a command whose threads all share a core."""
    core = str(max(os.sched_getaffinity(0)))
    limits = {"OMP_NUM_THREADS": "1", "NPROC": "1"}
    return subprocess.run(
        ["taskset", "--cpu-list", core, *command],
        check=True,
        env=os.environ | limits,
        **options,
    )


def result(python: Path, name: str, method: str, seed: int, args) -> dict:
    """Of one method with one seed."""
    path = args.folder / f"result-{name}-{method}-{seed}.json"
    if not path.exists():
        bundled = demos.load(name)
        parts = split_demos(bundled, seed)
        what = TASKS[name] | {
            "method": method,
            "seed": seed,
            "seconds": args.seconds,
            "discount": DISCOUNT,
            "learner_discount": args.learner_discount,
            "train": written([parts.train, parts.valid], args.folder / "train.npz"),
            "test": written([parts.test], args.folder / "test.npz"),
        }
        effort = {}
        if method == "hyperirl":
            out, effort = exported(name, seed, args.seconds, args.folder)
            what["exported"] = str(out)
        command = [str(python), str(WORKER), json.dumps(what)]
        done = on_one_core(command, stdout=subprocess.PIPE)
        found = effort | json.loads(done.stdout.splitlines()[-1])
        found["floor"] = float(np.mean(np.asarray(parts.test.expert_nll)))
        path.write_text(json.dumps(found))
    found = json.loads(path.read_text())
    print(f"{name}, {method}, seed {seed}: {found}", file=sys.stderr)
    return {"task": name, "method": method, "seed": seed} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, required=True, metavar="PATH")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--learner-discount", type=float, default=0.95, help="of GAIL's and AIRL's PPO"
    )
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="M"
    )
    parser.add_argument("--seeds", type=int, default=2, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = [
        result(args.python, name, method, seed, args)
        for seed in range(args.seeds)
        for name in args.tasks
        for method in args.methods
    ]
    for row in rows:
        last = f"{row['fresh'][-1][1]:.0f}" if "fresh" in row else "-"
        nll = f"{row['nll']:.0f} (floor {row['floor']:.0f})" if "nll" in row else "-"
        own = f"{row['return']:.0f}" if "return" in row else "-"
        head = f"{row['task']:9} {row['method']:9} seed {row['seed']}"
        print(f"{head}: NLL {nll}, return {own}, fresh policy {last}")
    if args.json is not None:
        results = {
            "seconds": args.seconds,
            "discount": DISCOUNT,
            "learner_discount": args.learner_discount,
            "rows": rows,
        }
        args.json.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
