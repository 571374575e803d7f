"""Many runs: all combinations of some settings, each with several seeds.

`python examples/sweep.py` uses processes of this machine, `python examples/sweep.py
--ray` starts Ray here, and `--ray ADDRESS --trust-cluster` joins a cluster. Stop it
whenever you like: the same command goes on where it was.
"""

import pathlib
import sys

from hyperirl import cli
from hyperirl.experiments.compare import compare


def main(*where: str, out: str = "runs/sweep-lqr", steps: int = 20, seeds: int = 2):
    """Sweeps, then takes the best by the likelihood of held-out demonstrations."""
    settings = ["--env", "lqr", "--inner", "exact", "--steps", str(steps)]
    choices = ["--set", "damping=0.1,1,10", "--seeds", str(seeds)]
    cli.main(["sweep", *settings, *choices, "--out", out, *where])

    best = compare([pathlib.Path(out)]).rows[0]
    print(f"best damping: {best['damping']}")
    return best


if __name__ == "__main__":
    main(*sys.argv[1:])
