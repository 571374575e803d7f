"""How long does the first outer step take, in a process of its own?

Each start is a fresh process that imports the package, sets a run up and does three
outer steps: with an empty compilation cache (cold) and again with what the first one
left there (cached). Given the sources of another version, both take turns and the
ratios are to that one. Wall-clock seconds are those a user waits for; processor seconds
say more on a machine that others use. The hash is of the parameters of reward and
policy after the last step.

    python benchmarks/start.py
    python benchmarks/start.py --before ../main/src --json start.json
    python benchmarks/start.py --tasks cartpole:ppo pendulum:ppo cartpole:sac
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
STEPS = 3


class _Enough(Exception):
    pass


def measure(task: str, inner: str) -> dict[str, Any]:
    """The seconds of one start, `[wall, processor]`, in this process."""
    marks = [(time.perf_counter(), time.process_time())]
    mark = lambda: marks.append((time.perf_counter(), time.process_time()))

    import equinox as eqx
    import jax
    import numpy as np

    from hyperirl.learning import loop, set_up
    from hyperirl.options import Options

    mark()
    setup = set_up(task, None, Options(inner=inner))
    mark()
    state: Any = None
    outer_step = loop.outer_step

    def watched(*args):
        nonlocal state
        result = outer_step(*args)
        state = result[0]
        return result

    def on_step(row: dict[str, Any]) -> None:
        mark()
        if row["step"] == STEPS:
            raise _Enough

    loop.outer_step = watched
    try:
        loop.run(setup, on_step=on_step)
    except _Enough:
        pass
    arrays = jax.tree.leaves(
        eqx.filter((state.reward, state.inner.policy), eqx.is_array)
    )
    content = b"".join(np.asarray(leaf).tobytes() for leaf in arrays)
    names = ["import", "set up", "first step", "second step", "third step"]
    took = [
        [round(b - a, 3) for a, b in zip(*pair, strict=True)]
        for pair in zip(marks[:-1], marks[1:], strict=True)
    ]
    total = [round(b - a, 3) for a, b in zip(marks[0], marks[3], strict=True)]
    hashed = hashlib.sha256(content).hexdigest()[:16]
    found: dict[str, Any] = dict(zip(names, took, strict=True))
    return found | {"to the first step": total, "hash": hashed}


def start(sources: Path, cache: str, task: str, inner: str) -> dict[str, Any]:
    """The same in a process of its own, with the package from these sources."""
    said = {
        "PYTHONPATH": str(sources),
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, str(HERE), "--one", task, inner]
    done = subprocess.run(
        command, env=os.environ | said, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(before: Path | None, tasks: list[str], repeats: int) -> list[dict]:
    """A row for each version, task, repeat and state of the cache."""
    versions = {"after": HERE.parent.parent / "src"}
    if before is not None:
        versions = {"before": before.resolve()} | versions
    rows = []
    for name in tasks:
        task, _, inner = name.partition(":")
        for repeat in range(repeats):
            for version, sources in versions.items():
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("cold", "cached"):
                        found = start(sources, cache, task, inner or "ppo")
                        row = {"task": name, "version": version, "cache": state}
                        rows.append(row | {"repeat": repeat} | found)
                        print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    shown = ("import", "set up", "first step", "second step", "to the first step")
    parts = [f"{name} {row[name][0]:.1f} ({row[name][1]:.1f})" for name in shown]
    return f"{row['task']} {row['version']} {row['cache']}: {', '.join(parts)}"


def ratios(rows: list[dict]) -> list[dict[str, Any]]:
    """After over before, of the same task, repeat and cache: `[wall, processor]`."""
    found = []
    place = lambda row: (row["task"], row["repeat"], row["cache"])
    before = {place(row): row for row in rows if row["version"] == "before"}
    for row in rows:
        if row["version"] != "after" or place(row) not in before:
            continue
        other = before[place(row)]
        shown = ("set up", "first step", "second step", "third step")
        share = {
            name: [round(a / b, 2) for a, b in zip(row[name], other[name], strict=True)]
            for name in (*shown, "to the first step")
        }
        same = row["hash"] == other["hash"]
        found.append(
            dict(task=row["task"], cache=row["cache"]) | share | {"same bits": same}
        )
    return found


def main() -> None:
    """Prints a line for each start, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, metavar="SRC", help="another version")
    parser.add_argument("--tasks", nargs="+", default=["cartpole:ppo"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    rows = compare(given.before, given.tasks, given.repeats)
    found = ratios(rows)
    for row in found:
        print(row)
    if given.json:
        given.json.write_text(json.dumps({"starts": rows, "ratios": found}, indent=2))


if __name__ == "__main__":
    main()
