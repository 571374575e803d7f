"""A sweep on Ray whose worker, driver or node is killed while its runs learn."""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from soak_jobs import whole_files

from hyperirl.cli import main as hyperirl
from hyperirl.experiments.sockets import listening

STEPS = 40
PATIENCE = 60.0  # Seconds until what a dead driver left behind must be gone.


def run(child: Callable[..., Any], only: list[str], shown: str) -> list[dict]:
    """A row for each kill: how the sweep ended, and whether its arrays are the same."""
    victims = [one for one in VICTIMS if not only or one in only]
    rows: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="hyperirl-ray-") as folder:
        home = Path(folder)
        log, whole = home / "log", home / "whole"
        if victims:
            ended = child(lambda: _sweep(whole, shown), log, None)
            if ended.code:
                raise SystemExit(ended.words)
        for name in victims:
            rows.append(_row(name, home / name, whole, shown, child, log))
            print(rows[-1], flush=True)
    return rows


def _row(
    name: str, out: Path, whole: Path, shown: str, child: Callable[..., Any], log: Path
) -> dict:
    began, pids = time.monotonic(), out.with_suffix(".pids")
    ended = child(lambda: _harmed(name, out, pids, shown), log, None)
    seconds = time.monotonic() - began
    same = _result(out) == _result(whole)
    killed = pids.exists()
    if not same:  # As the user would, with the same command.
        child(lambda: _sweep(out, shown, "--ray"), log, None)
    tidy = ended.code == (-signal.SIGKILL if name == "ray_driver" else 0)
    left = _left(pids) if name == "ray_driver" else []
    again = "the same arrays" if same else "the same command again: the same arrays"
    ends_same = _result(out) == _result(whole)
    return {
        "fault": name,
        "code": ended.code,
        "said": ended.words[-400:],
        "afterwards": again if ends_same else "other arrays",
        "left running": left,
        "seconds": round(seconds, 1),
        "wrong": int(not (tidy and killed and ends_same and not left)),
    }


def _left(pids: Path) -> list[str]:
    """What of a dead driver's processes still learns after a while."""
    stop, left = time.monotonic() + PATIENCE, ["?"]
    while left and time.monotonic() < stop:
        time.sleep(0.5)
        names = [_words(int(pid)) for pid in pids.read_text().split()]
        left = [name for name in names if "_perform" in name]
    return left


def _sweep(out: Path, shown: str, *more: str) -> None:
    words = ["sweep", "--env", "tabular", "--demos", shown, "--set", "damping=1,10"]
    words += ["--seeds", "1", "--steps", str(STEPS), "--agent-episodes", "16"]
    hyperirl([*words, "--out", str(out), *more])


def _harmed(name: str, out: Path, pids: Path, shown: str) -> None:
    """The sweep; its victim is killed when a run has some rows."""

    def watch() -> None:
        while not _rows(out):
            time.sleep(0.02)
        if any(not socket.local for socket in listening(os.getpid()) or []):
            print("It can be reached from elsewhere.", flush=True)
            os._exit(1)
        family = list(_below(os.getpid()))
        pids.write_text("\n".join(map(str, family)))
        mark = VICTIMS[name]
        victims = [pid for pid in family if mark in _words(pid)] if mark else []
        os.kill(victims[0] if mark else os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    _sweep(out, shown, "--ray")


def _rows(out: Path) -> bool:
    return any(path.stat().st_size for path in out.rglob("metrics.jsonl"))


def _below(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in file.read_text().split():
            yield int(word)
            yield from _below(int(word))


def _words(pid: int) -> str:
    """The command line of a process; nothing if it has ended."""
    with contextlib.suppress(OSError):
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        return line.replace(b"\0", b" ").decode(errors="replace")
    return ""


def _result(out: Path) -> dict[str, Any]:
    kept = ("checkpoint.npz", "reward.npz", "policy.npz")
    return {n: data for n, data in whole_files(out).items() if n.endswith(kept)}


# What is killed: a part of its command line. The driver is this process itself.
VICTIMS = {"ray_worker": "ray::_perform", "ray_node": "raylet/raylet", "ray_driver": ""}
