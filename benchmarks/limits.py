"""How much of a run's gap is its demonstrations', and where in an episode is the rest?

No method knows an expert better than its demonstrations do. A clone of the same class,
by the same split, shows what they allow: its gap where it learned is what the class and
the optimizer leave, its gap elsewhere also holds what finite data cost. What the policy
of a run has beyond the clone is the reward's and the inner solver's. It is given by
parts of an episode, because learning discounts and the NLL does not.

    hyperirl learn --env cartpole --out runs/mine
    python benchmarks/limits.py runs/mine --json limits.json
"""

import argparse
import json

import jax.random as jr
import numpy as np

from hyperirl import saving
from hyperirl.cloning import clone
from hyperirl.evaluation import policies_like
from hyperirl.learning import subject_of
from hyperirl.policies import log_probs
from hyperirl.runs import RunFolder

PARTS = ("train", "valid", "test")
BLOCK = 100  # Time steps.


def gap_percent(policy, part) -> dict:
    """Of the mean NLL above the expert's own, with its standard error."""
    floor = np.asarray(part.expert_nll, np.float64)
    nll = -np.asarray(log_probs(policy, part.trajectories), np.float64).sum(axis=1)
    above = 100 * (nll - floor) / abs(floor.mean())
    return {"mean": above.mean(), "error": above.std(ddof=1) / len(above) ** 0.5}


def by_time(policy, rival, part) -> list[float]:
    """Mean nats above the rival's in each block of an episode."""
    ours, theirs = (
        -np.asarray(log_probs(p, part.trajectories), np.float64).mean(axis=0)
        for p in (policy, rival)
    )
    starts = range(0, len(ours), BLOCK)
    return [float((ours - theirs)[start : start + BLOCK].sum()) for start in starts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument("--json", help="write all numbers to this file")
    options = parser.parse_args()
    folder = RunFolder.open(options.run)
    subject = subject_of(folder)
    train, valid = (part.trajectories for part in subject.parts[:2])
    learned = saving.load_policy(folder.policy_path)
    untrained = policies_like(learned)(subject.environment, jr.key(0))
    cloned, _ = clone(
        untrained, train, valid, key=jr.key(1), num_steps=6000, learning_rate=1e-3
    )
    parts = dict(zip(PARTS, subject.parts, strict=True))
    found = {
        "clone_gap_percent": {n: gap_percent(cloned, p) for n, p in parts.items()},
        "gap_percent": {n: gap_percent(learned, p) for n, p in parts.items()},
        "nats_above_clone": {n: by_time(learned, cloned, p) for n, p in parts.items()},
    }
    print(json.dumps(found, indent=1))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
