"""Faults that are no signals: full disks, folders that go away, others who write."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import soak_ray
from soak_jobs import cached, whole_files

from hyperirl.cli import main as hyperirl

STEPS = 30
AT = 10  # The step after which a fault strikes.


def run(child: Callable[..., Any], only: list[str]) -> list[dict]:
    """A row for each fault: what the command said, and what became of the run."""
    rows = []
    shown = str(cached("make_tabular_demos"))
    with tempfile.TemporaryDirectory(prefix="hyperirl-faults-") as folder:
        home = Path(folder)
        log = home / "log"
        expected: dict[str, Any] = {}
        for name in ("compiled", "whole"):  # The second finds compiled programs.
            ended = child(lambda out=home / name: _learn(out, shown), log, None)
            if ended.code:
                raise SystemExit(ended.words)
            expected = _result(home / name)
        for fault in FAULTS:
            if only and fault.__name__ not in only:
                continue
            rows.append(_row(fault, home / fault.__name__, shown, expected, child, log))
            print(rows[-1], flush=True)
    return rows + soak_ray.run(child, only, shown)


def _row(
    fault: Callable[[Path, str], None],
    out: Path,
    shown: str,
    expected: dict[str, Any],
    child: Callable[..., Any],
    log: Path,
) -> dict:
    began = time.monotonic()
    ended = child(lambda: fault(out, shown), log, None)
    again = child(lambda: _go_on(out, shown), log, None)
    tidy = ended.code in (0, 1, 2) and "Traceback" not in ended.words
    same = again.code == 0 and _result(out) == expected
    refused = again.code == 2 and "Traceback" not in again.words
    return {
        "fault": fault.__name__,
        "code": ended.code,
        "said": _sentence(ended.words),
        "afterwards": "the same arrays" if same else _sentence(again.words),
        "seconds": round(time.monotonic() - began, 1),
        "wrong": int(not (tidy and (same or refused))),
    }


def _sentence(words: str) -> str:
    """What a command said of a problem, or its last words."""
    lines = words.strip().splitlines() or [""]
    told = [line for line in lines if line.startswith("hyperirl:")]
    return (told or lines)[-1][:300]


def _learn(out: Path, shown: str) -> None:
    words = ["learn", "--env", "tabular", "--demos", shown, "--steps", str(STEPS)]
    hyperirl([*words, "--agent-episodes", "16", "--out", str(out)])


def _go_on(out: Path, shown: str) -> None:
    """What a user does next."""
    if (out / "config.json").exists():
        return hyperirl(["resume", str(out)])
    shutil.rmtree(out, ignore_errors=True)
    return _learn(out, shown)


def _result(out: Path) -> dict[str, Any]:
    kept = ("checkpoint.npz", "reward.npz", "policy.npz")
    return {n: data for n, data in whole_files(out).items() if n in kept}


def _after_steps(out: Path, act: Callable[[], object]) -> None:
    """Acts from a thread as soon as the run has some rows."""

    def watch() -> None:
        while True:
            time.sleep(0.01)
            with contextlib.suppress(OSError):
                if (out / "metrics.jsonl").read_bytes().count(b"\n") >= AT:
                    act()
                    return

    threading.Thread(target=watch, daemon=True).start()


def full_disk(out: Path, shown: str) -> None:
    """No file may grow beyond some kilobytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # An error, as a full disk gives.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
    _after_steps(out, limit)
    _learn(out, shown)


def mounted_full_disk(out: Path, shown: str) -> None:
    """A disk of its own, which something else fills; for those who may mount one."""
    with _disk(out) as disk:
        run, filler = disk / "run", disk / "filler"
        _after_steps(run, lambda: _fill(filler))
        try:
            _learn(run, shown)
        finally:
            shutil.copytree(run, out)  # To be gone on with on another disk.


def read_only(out: Path, shown: str) -> None:
    """The folder may be read, and no longer written; root becomes somebody else."""
    root = os.geteuid() == 0

    def forbid() -> None:
        os.chmod(out, 0o555)
        if root:
            os.seteuid(65534)

    _after_steps(out, forbid)
    try:
        _learn(out, shown)
    finally:
        if root:
            os.seteuid(0)
        os.chmod(out, 0o755)


@contextlib.contextmanager
def _disk(out: Path):
    place = out.with_name(f"{out.name}-disk")
    place.mkdir()
    _mount("-t", "tmpfs", "-o", "size=4m", "none", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _fill(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


def deleted_folder(out: Path, shown: str) -> None:
    """The folder is deleted while the run learns."""
    _after_steps(out, lambda: shutil.rmtree(out))
    _learn(out, shown)


def replaced_folder(out: Path, shown: str) -> None:
    """The folder is moved away, and a file put in its place."""

    def replace() -> None:
        os.rename(out, out.with_name(f"{out.name}-moved"))
        out.write_text("not a folder")

    _after_steps(out, replace)
    try:
        _learn(out, shown)
    finally:
        out.unlink(missing_ok=True)


def two_processes(out: Path, shown: str) -> None:
    """A second process resumes the run while the first learns; it must be refused."""
    second: list[subprocess.CompletedProcess] = []
    command = [sys.executable, "-m", "hyperirl", "resume", str(out)]
    paused = threading.Event()

    def start() -> None:
        second.append(subprocess.run(command, capture_output=True, text=True))
        paused.set()

    from hyperirl.runs import RunFolder

    append = RunFolder.append_metrics

    def wait_for_it(folder: RunFolder, row: Any) -> None:
        append(folder, row)
        if row["step"] == AT:
            threading.Thread(target=start).start()
            paused.wait(60)

    RunFolder.append_metrics = wait_for_it
    _learn(out, shown)
    words = second[0].stderr
    if second[0].returncode != 2 or "Another process is working on" not in words:
        raise SystemExit(f"The second process was let in: {words}")
    print(words.strip())


def changed_demos(out: Path, shown: str) -> None:
    """The demonstrations in the folder are replaced by others between two starts."""
    from hyperirl import demos

    _after_steps(out, lambda: os.kill(os.getpid(), signal.SIGINT))
    with contextlib.suppress(SystemExit):
        _learn(out, shown)
    demos.save(demos.load(out / "demos.npz")[:30], out / "demos.npz", overwrite=True)
    hyperirl(["resume", str(out)])


def clock_jumps(out: Path, shown: str) -> None:
    """The wall clock goes back and forth by years at every look."""
    real, calls = time.time, iter(range(10**9))
    time.time = lambda: real() + (-1) ** next(calls) * 10**8
    _learn(out, shown)


FAULTS = (
    full_disk,
    mounted_full_disk,
    read_only,
    deleted_folder,
    replaced_folder,
    two_processes,
    changed_demos,
    clock_jumps,
)
