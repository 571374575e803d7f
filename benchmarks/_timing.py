"""Timing that other load disturbs as little as possible: rivals take turns.

Each repeat runs every rival once, so that a busy moment hits all of them, and ratios
are taken within a repeat. Report medians with the smallest and the largest.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import jax


def seconds(
    run: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """How long one call takes, all of its arrays included.

    With `clock=time.process_time`, the time it keeps processors busy: what is left of a
    comparison on a machine that others use heavily.
    """
    start = clock()
    jax.block_until_ready(run())
    return clock() - start


def interleaved(
    rivals: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Seconds of the first call of each (it compiles), and of `repeats` more."""
    first = {name: seconds(run, clock) for name, run in rivals.items()}
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(repeats):
        for name, run in rivals.items():
            times[name].append(seconds(run, clock))
    return first, times


def spread(values: list[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def arguments(description: str) -> argparse.Namespace:
    """`--quick` and `--json FILE`, as every benchmark takes them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    return parser.parse_args()


def write(results: dict, path: Path | None) -> None:
    """Writes the results if a file was asked for."""
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n")
