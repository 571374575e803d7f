"""Kills commands at random moments, and compares what is left with unharmed runs.

    python scripts/soak.py --kills 1000 --json soak.json
    python scripts/soak.py --kills 40 --only learn report --json soak.json
    python scripts/soak.py --long 10000          # One long run instead.
    python scripts/soak.py --faults              # Full disks, deleted folders, ...
    python scripts/soak.py --numerics            # One demonstration, one action, ...

Commands run in children of a process that has imported everything and started nothing,
so a kill costs what the command costs. A killed command is started again, until it is
done; then its files must be those of a run that nobody touched, byte for byte. A table
that is there already is added to, so that a thousand kills can be had in pieces.
"""

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import soak_faults
import soak_long
import soak_numerics
from soak_jobs import JOBS, Job

from hyperirl.cli import main as hyperirl

SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
POLITE = 130  # The exit code of a command that was asked to stop.
PATIENCE = 300.0  # Seconds that a command may take.


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a child ended: its code, minus a signal's number if that ended it."""

    code: int
    words: str
    seconds: float

    @property
    def tidy(self) -> bool:
        """Whether it ended as it should, whatever was sent to it."""
        killed = -self.code in [getattr(signal, name) for name in SIGNALS]
        return (killed or self.code in (0, POLITE)) and "Traceback" not in self.words


def child(work: Callable[[], object], log: Path, after: float | None, number: int = 0):
    """Runs `work` in a child; sends it a signal after some seconds, unless `None`."""
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        _be_the_child(work, log)
    stop = began + PATIENCE
    send = stop if after is None else began + after
    sent = 0.0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        now = time.monotonic()
        if done:
            code = os.waitstatus_to_exitcode(status)
            return Ended(code, log.read_text(errors="replace"), now - (sent or began))
        if now > stop:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Ended(1, f"Hung.\n{log.read_text(errors='replace')}", now - began)
        if now > send and not sent:
            os.kill(pid, number)
            sent = now
        time.sleep(0.002)


def _be_the_child(work: Callable[[], object], log: Path) -> None:
    code = 1
    try:
        os.setsid()
        _end_with(os.getppid())
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """The child dies with whoever watches it; Linux knows how."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:  # It has ended already.
            os._exit(1)


class Soak:
    """One kind of command, and what became of it."""

    def __init__(self, job: Job, home: Path, source: random.Random):
        self.job, self.home, self.random = job, home, source
        self._slug = job.name.replace(" ", "-").replace(":", "-")
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self.slowest_stop = 0.0
        self.window = 0.0
        self.log = home / f"{self._slug}.log"
        self._number = 0
        self.expected, self.seconds = self._unharmed()
        self.window = self.seconds
        self._fresh()

    def _unharmed(self) -> tuple[dict[str, object], float]:
        """The files of a command that nobody touched, and how long it took."""
        for _ in range(2):  # The first may compile.
            self._fresh()
            ended = child(lambda: self._command(), self.log, None)
            if ended.code:
                raise SystemExit(f"{self.job.name} fails by itself:\n{ended.words}")
        return self.job.result(self.place), ended.seconds

    def _fresh(self) -> None:
        self._number += 1
        self.place = self.home / f"{self._slug}-{self._number}"
        self.place.mkdir()
        self.job.prepare(self.place)

    def _command(self) -> None:
        self.job.run(self.place, hyperirl)

    def _look(self) -> None:
        if problem := self.job.damage(self.place):
            print(problem)
            raise SystemExit(1)

    def kill(self, name: str) -> None:
        """Starts the command, or goes on with it, and sends a signal.

        A command that goes on has less to do than one that starts. So the moments are
        drawn from a window that follows: it shrinks when the command was done first.
        """
        after = self.random.uniform(0, self.window)
        ended = child(self._command, self.log, after, getattr(signal, name))
        problem = "" if ended.tidy else f"code {ended.code}: {ended.words[-600:]}"
        if name != "SIGKILL":
            self.slowest_stop = max(self.slowest_stop, ended.seconds)
        # By a child: no thread of JAX may run in the process that forks.
        looked = child(self._look, self.log, None)
        problem = problem or (looked.words if looked.code else "")
        if problem:
            self._failed(f"{name} after {after:.3f} s: {problem}")
        elif ended.code == 0:
            self.window *= 0.85
            self.finish(name)
        else:
            self.window = min(1.05 * self.window, self.seconds)
            self.outcomes["interrupted"] += 1

    def finish(self, name: str = "") -> None:
        """Compares the files of a command that is done."""
        found = self.job.result(self.place)
        if found != self.expected:
            names = {*found, *self.expected}
            differ = [n for n in names if found.get(n) != self.expected.get(n)]
            self._failed(f"{name}: {', '.join(sorted(differ))} differ")
        else:
            self.outcomes["done before the signal" if name else "ended the same"] += 1
            shutil.rmtree(self.place)
        self._fresh()

    def _failed(self, words: str) -> None:
        self.outcomes["WRONG"] += 1
        self.failures.append(f"{self.place.name}: {words}")
        print(f"  {self.failures[-1]}", flush=True)

    def complete(self) -> None:
        """Lets the command go on to its end, undisturbed."""
        ended = child(self._command, self.log, None)
        if ended.code:
            self._failed(f"did not go on, code {ended.code}: {ended.words[-600:]}")
            self._fresh()
        else:
            self.finish()

    def row(self, kills: int) -> dict[str, object]:
        """A row of the table."""
        return {
            "command": self.job.name,
            "kills": kills,
            "interrupted": self.outcomes["interrupted"],
            "compared": self.outcomes["ended the same"]
            + self.outcomes["done before the signal"],
            "wrong": self.outcomes["WRONG"],
            "seconds_unharmed": round(self.seconds, 2),
            "slowest_stop": round(self.slowest_stop, 2),
            "failures": self.failures,
        }


def soak(args: argparse.Namespace) -> list[dict]:
    """Kills in turn until there were enough, or the time is over."""
    before = _table(args.json)
    seed = args.seed + sum(row["kills"] for row in before.values())
    source, stop = random.Random(seed), time.monotonic() + 60 * args.minutes
    jobs = [job for job in JOBS if not args.only or job.name in args.only]
    share = sum(job.share for job in jobs)
    with tempfile.TemporaryDirectory(prefix="hyperirl-soak-") as folder:
        for number, job in enumerate(jobs):
            wanted = round(args.kills * job.share / share)
            rest = (stop - time.monotonic()) / (len(jobs) - number)
            if rest <= 0:
                break
            soaked = Soak(job, Path(folder), source)
            row = _soaked(soaked, wanted, time.monotonic() + rest)
            print(json.dumps(row | {"failures": len(soaked.failures)}), flush=True)
            before[job.name] = _added(before.get(job.name), row)
            _write(args.json, list(before.values()))
    return list(before.values())


def _table(path: Path | None) -> dict[str, dict]:
    """The rows of an earlier piece, by command."""
    if path is None or not path.exists():
        return {}
    return {row["command"]: row for row in json.loads(path.read_text())}


def _added(old: dict | None, new: dict) -> dict:
    """Two pieces of a row as one."""
    if old is None:
        return new
    summed = ("kills", "interrupted", "compared", "wrong", "failures")
    slower = max(old["slowest_stop"], new["slowest_stop"])
    return new | {n: old[n] + new[n] for n in summed} | {"slowest_stop": slower}


def _soaked(soaked: Soak, wanted: int, stop: float) -> dict[str, object]:
    done = 0
    while done < wanted and time.monotonic() < stop:
        soaked.kill(SIGNALS[done % len(SIGNALS)])
        done += 1
        if done % soaked.job.each == 0:
            soaked.complete()
    if done % soaked.job.each:
        soaked.complete()
    return soaked.row(done)


def _write(path: Path | None, rows: list[dict]) -> None:
    if path is not None:
        path.write_text(json.dumps(rows, indent=2) + "\n")


def main() -> None:
    """Prints a line for each kind; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[], help="commands, or faults")
    parser.add_argument("--minutes", type=float, default=60, help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", action="store_true", help="faults without signals")
    parser.add_argument("--numerics", action="store_true", help="cases at the edge")
    parser.add_argument("--long", type=int, help="outer steps of one long run instead")
    parser.add_argument("--json", type=Path, help="where the table goes")
    args = parser.parse_args()
    if args.long:
        rows = soak_long.run(args.long)
    elif args.numerics:
        rows = soak_numerics.run(child, args.only)
    elif args.faults:
        rows = soak_faults.run(child, args.only)
    else:
        rows = soak(args)
    _write(args.json, rows)
    wrong = sum(int(row["wrong"]) for row in rows)
    print(f"{wrong} of {sum(int(row.get('kills', 1)) for row in rows)} went wrong.")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
