"""Damages files of every kind, and counts what their loaders and commands say.

    python scripts/fuzz.py --inputs 1000000 --json fuzz.json
    python scripts/fuzz.py --inputs 5000 --only Reward ConfigFile
    python scripts/fuzz.py --inputs 20000 --commands --json commands.json

Each loader runs in a process of its own, so one that crashes is counted too. An input
that takes over 10 seconds of the processor, or over 64 MB and 20 times its file, is a
failure, and so is anything but a `ValueError` of one line.
"""

import argparse
import collections
import dataclasses
import json
import multiprocessing
import sys
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FAULTS = Path(__file__).parent.parent / "tests" / "faults"
sys.path.insert(0, str(FAULTS))

SECONDS, MEMORY, MULTIPLE = 10.0, 2**26, 20
MEASURED = 20  # One input of so many: measuring memory is slow.
BATCH = 20_000  # Inputs of one process: starting it takes seconds.
SPAWN = multiprocessing.get_context("spawn")
FAILURES = ("traceback", "over time", "over memory", "crash")
OUTCOMES = ("loaded", "refused", *FAILURES)


def try_one(loader: Any, path: Path, measured: bool) -> tuple[str, str]:
    """What becomes of a damaged file, and the words of a failure."""
    began, size = time.process_time(), path.stat().st_size
    if measured:
        tracemalloc.start()
    try:
        loader.read(path)
        found = "loaded", ""
    except ValueError as error:
        words = str(error)
        plain = words and "\n" not in words and len(words) < 1000
        found = ("refused", "") if plain else ("traceback", repr(error)[:300])
    except MemoryError as error:
        found = "over memory", repr(error)[:300]
    except BaseException as error:
        found = "traceback", repr(error)[:300]
    if measured:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > MEMORY + MULTIPLE * size:
            found = "over memory", f"{peak} bytes for a file of {size}"
    if (seconds := time.process_time() - began) > SECONDS:
        found = "over time", f"{seconds:.0f} s"
    return found


def readers(source: Path | None) -> dict[str, Any]:
    """What reads files, by name: loaders, or commands if there is a run to read."""
    if source is None:
        import loaders

        return {type(loader).__name__: loader for loader in loaders.LOADERS}
    import commands

    found = (dataclasses.replace(c, source=source) for c in commands.COMMANDS)
    return {command.name: command for command in found}


def make_run(home: str) -> None:
    """A run for commands to read."""
    import commands

    commands.make_run(Path(home))


def batch(name: str, source: Path | None, seed: int, inputs: int, answer: Any) -> None:
    """So many inputs of one reader; in a process of its own."""
    warnings.simplefilter("ignore")
    loader = readers(source)[name]
    random, counts, failures = np.random.default_rng(seed), collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="hyperirl-fuzz-") as folder:
        path = loader.write(Path(folder))
        whole = path.read_bytes()
        for number in range(inputs):
            damaged = loader.damaged(whole, random)
            path.write_bytes(damaged)
            found, words = try_one(loader, path, number % MEASURED == 0)
            counts[found] += 1
            if found in FAILURES:
                failures.append({"words": words, "input": damaged[:2000].hex()})
    answer.put((dict(counts), failures[:5]))


def run_batch(
    name: str, source: Path | None, seed: int, inputs: int
) -> tuple[dict[str, int], list]:
    """The counts of a batch; a process that dies is a crash."""
    answer = SPAWN.Queue()
    words = (name, source, seed, inputs, answer)
    process = SPAWN.Process(target=batch, args=words)
    process.start()
    while process.is_alive() and answer.empty():
        time.sleep(0.05)
    found = {"crash": 1}, [{"words": f"seed {seed} ended the process", "input": ""}]
    if not answer.empty():
        found = answer.get()
    process.join()
    return found


def main() -> None:
    """Prints a line for each reader; the exit code is 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000, help="in all")
    parser.add_argument("--only", nargs="*", default=[], help="names of readers")
    parser.add_argument("--commands", action="store_true", help="commands of a run")
    parser.add_argument("--run", type=Path, help="an evaluated one, for the commands")
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the table goes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hyperirl-fuzz-run-") as home:
        source = args.run
        if args.commands and source is None:
            source = Path(home) / "run"
            maker = SPAWN.Process(target=make_run, args=(home,))
            maker.start()
            maker.join()
        rows = fuzz(source, args)
    total = sum(row.get(kind, 0) for row in rows for kind in OUTCOMES)
    wrong = sum(row.get(kind, 0) for row in rows for kind in FAILURES)
    print(f"{total} inputs, {wrong} failures.")
    raise SystemExit(1 if wrong else 0)


def fuzz(source: Path | None, args: argparse.Namespace) -> list[dict]:
    """A row for each reader; they take turns, so that all get their share."""
    names = [name for name in readers(source) if not args.only or name in args.only]
    each = -(-args.inputs // len(names))
    counts = {name: collections.Counter() for name in names}
    failures: dict[str, list] = {name: [] for name in names}
    stop = time.monotonic() + 60 * args.minutes
    size, rows = min(each, BATCH), []
    for number in range(-(-each // size)):
        for name in names:
            if time.monotonic() > stop:
                break
            found, failed = run_batch(name, source, args.seed + 1000 * number, size)
            counts[name].update(found)
            failures[name] += failed
            print(f"{name:24} {dict(counts[name])} {failed[:1]}", flush=True)
            rows = [{"loader": n, **counts[n], "failures": failures[n]} for n in names]
            if args.json is not None:
                args.json.write_text(json.dumps(rows, indent=2) + "\n")
    return rows


if __name__ == "__main__":
    main()
