"""Faults that are no signals: full disks, folders that go away, others who write."""

import contextlib
import os
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soak_jobs import cached, whole_files

from hyperirl.cli import main as hyperirl

STEPS = 60


def run(child: Callable[..., Any]) -> list[dict]:
    """A row for each fault: what the command said, and what became of the run."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="hyperirl-faults-") as folder:
        home = Path(folder)
        log = home / "log"
        ended = child(lambda: _learn(home / "whole"), log, None)
        if ended.code:
            raise SystemExit(ended.words)
        expected = _result(home / "whole")
        for fault in FAULTS:
            out = home / fault.__name__
            ended = child(lambda f=fault, out=out: f(out), log, None)
            words = ended.words.strip().splitlines()
            again = child(lambda out=out: _go_on(out), log, None)
            tidy = ended.code in (0, 1, 2) and "Traceback" not in ended.words
            same = again.code == 0 and _result(out) == expected
            refused = again.code == 2 and "Traceback" not in again.words
            rows.append(
                {
                    "fault": fault.__name__,
                    "code": ended.code,
                    "said": words[-1][:300] if words else "",
                    "afterwards": "the same arrays" if same else again.words[-300:],
                    "wrong": int(not (tidy and (same or refused))),
                }
            )
            print(rows[-1], flush=True)
    return rows


def _words(out: Path) -> list[str]:
    shown = str(cached("make_tabular_demos"))
    words = ["learn", "--env", "tabular", "--demos", shown, "--steps", str(STEPS)]
    return [*words, "--agent-episodes", "16", "--out", str(out)]


def _learn(out: Path) -> None:
    hyperirl(_words(out))


def _go_on(out: Path) -> None:
    """What a user does next."""
    if (out / "config.json").exists():
        return hyperirl(["resume", str(out)])
    shutil.rmtree(out, ignore_errors=True)
    return _learn(out)


def _result(out: Path) -> dict[str, Any]:
    kept = ("checkpoint.npz", "reward.npz", "policy.npz")
    return {n: data for n, data in whole_files(out).items() if n in kept}


def _after_steps(out: Path, count: int, act: Callable[[], object]) -> None:
    """Acts from a thread as soon as the run has so many rows."""

    def watch() -> None:
        while True:
            time.sleep(0.01)
            with contextlib.suppress(OSError):
                if (out / "metrics.jsonl").read_bytes().count(b"\n") >= count:
                    act()
                    return

    threading.Thread(target=watch, daemon=True).start()


def full_disk(out: Path) -> None:
    """No file may grow beyond some kilobytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # An error, as a full disk gives.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
    _after_steps(out, 10, limit)
    _learn(out)


def deleted_folder(out: Path) -> None:
    """The folder is deleted while the run learns."""
    _after_steps(out, 10, lambda: shutil.rmtree(out))
    _learn(out)


def replaced_folder(out: Path) -> None:
    """The folder is moved away, and a file put in its place."""

    def replace() -> None:
        os.rename(out, out.with_name(f"{out.name}-moved"))
        out.write_text("not a folder")

    _after_steps(out, 10, replace)
    try:
        _learn(out)
    finally:
        out.unlink(missing_ok=True)


def two_processes(out: Path) -> None:
    """A second process resumes the run while the first learns."""

    def second() -> None:
        pid = os.fork()
        if not pid:
            os.execvp("hyperirl", ["hyperirl", "resume", str(out)])
        os.waitpid(pid, 0)

    _after_steps(out, 10, second)
    _learn(out)


def changed_demos(out: Path) -> None:
    """The demonstrations in the folder are replaced by others between two starts."""
    from hyperirl import demos

    _after_steps(out, 10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with contextlib.suppress(SystemExit):
        _learn(out)
    demos.save(demos.load(out / "demos.npz")[:30], out / "demos.npz", overwrite=True)
    hyperirl(["resume", str(out)])


def clock_jumps(out: Path) -> None:
    """The wall clock goes back and forth by years at every look."""
    real, calls = time.time, iter(range(10**9))
    time.time = lambda: real() + (-1) ** next(calls) * 10**8
    _learn(out)


FAULTS = (
    full_disk,
    deleted_folder,
    replaced_folder,
    two_processes,
    changed_demos,
    clock_jumps,
)
