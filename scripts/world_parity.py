"""Prints how many steps of each batch of robots differ from Gymnasium's, as a table.

python scripts/world_parity.py --envs 8 --steps 1000
"""

import argparse

from hyperirl.worlds.parity import compare
from hyperirl.worlds.robots import ROBOTS


def main() -> None:
    """Compares all robots, and exits with an error if any bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1000, help="of each environment")
    options = parser.parse_args()
    print("| robot | steps | terminations | resets | mismatches |")
    print("|---|---|---|---|---|")
    worst = 0
    for name in ROBOTS:
        found = compare(name, options.envs, options.steps)
        worst = max(worst, found.mismatches)
        numbers = found.steps, found.terminations, found.resets, found.mismatches
        print(f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |", flush=True)
    raise SystemExit(worst > 0)


if __name__ == "__main__":
    main()
