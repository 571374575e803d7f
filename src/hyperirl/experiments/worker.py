"""The process that does a cell: `python -m hyperirl.experiments.worker OUT MODULES`.

The cell is a line of JSON on the standard input, which stays open as long as whoever
started the process lives. When it closes, the process ends: nothing works on unseen.
"""

import importlib
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperirl.experiments.cell import Cell, Result
from hyperirl.runs.provenance import provenance

REFUSED = 2  # The exit code of a cell that would fail again.


def perform(cell: Cell, out: Path, modules: Sequence[str] = ()) -> Result:
    """Does the work of a cell, and saves its result unless that is there already.

    Args:
        cell: What to do.
        out: The folder of all experiments.
        modules: To import first, by the word of the user and never of a file. They may
            be in the folder the program was started in.
    """
    if (found := cell.load(out)) is not None:
        return found
    if modules and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in modules:
        importlib.import_module(name)
    began = time.monotonic()
    folder = cell.work_folder(out)
    result = importlib.import_module(cell.kind).run(dict(cell.settings), folder)
    result = _plain(result) | {
        "wall_seconds": time.monotonic() - began,
        "peak_mb": peak_megabytes(),
        "provenance": provenance(sys.argv),
    }
    cell.save(out, result)
    return result


def peak_megabytes() -> float:
    """The largest resident set of this program so far.

    On Linux `ru_maxrss` is never lower than that of the process that started this one,
    so the kernel's own mark is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        marks = [line for line in status.read_text().splitlines() if "VmHWM" in line]
        return int(marks[0].split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _plain(value: Any) -> Any:
    """As JSON knows it: NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _end_with_parent() -> None:
    """Ends this process when the standard input is closed."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Reads a cell and does it."""
    cell = Cell.from_json(sys.stdin.readline())
    _end_with_parent()
    try:
        perform(cell, Path(sys.argv[1]), sys.argv[2:])
    except ValueError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from error


if __name__ == "__main__":
    main()
