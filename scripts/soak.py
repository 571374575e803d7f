"""Kills commands at random moments, and compares what is left with unharmed runs.

    python scripts/soak.py --kills 1000 --minutes 40 --json soak.json
    python scripts/soak.py --kills 40 --only learn report --json soak.json
    python scripts/soak.py --long 10000          # One long run instead.
    python scripts/soak.py --faults              # Full disks, deleted folders, ...
    python scripts/soak.py --numerics            # One demonstration, one action, ...

Commands run in children of a process that has imported everything and started nothing,
so a kill costs what the command costs. A killed command is started again, until it is
done; then its files must be those of a run that nobody touched, byte for byte. Only
signals that came before the command was done are counted as kills. A table that is
there already is added to, so that a thousand kills can be had in pieces.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import faulthandler
import importlib
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
NUMBERS = [getattr(signal, name) for name in SIGNALS[1:]]  # SIGKILL asks nobody.
POLITE = 130  # The exit code of a command that was asked to stop.
PATIENCE = 900.0  # Seconds that a command may take.


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a child ended: its code, minus a signal's number if that ended it."""

    code: int
    words: str
    seconds: float
    used: float  # By the clock that said when to send the signal.

    @property
    def tidy(self) -> bool:
        """Whether it ended as it should, whatever was sent to it."""
        killed = -self.code in [getattr(signal, name) for name in SIGNALS]
        return (killed or self.code in (0, POLITE)) and "Traceback" not in self.words


def child(
    work: Callable[[], object],
    log: Path,
    after: float | None,
    number: int = 0,
    clock: Callable[[int], float] | None = None,
):
    """Runs `work` in a child; sends it a signal after some seconds, unless `None`.

    The seconds are those of a clock that is told the child, or else of the wall.
    """
    began = time.monotonic()
    log.write_text("")
    # Until the command runs, a signal would hit this script.
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    pid = os.fork()
    if not pid:
        _be_the_child(work, log)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
    stop = began + PATIENCE
    spent = clock or (lambda _: time.monotonic() - began)
    sent = used = 0.0
    while True:
        used = spent(pid)
        done, status = os.waitpid(pid, os.WNOHANG)
        now = time.monotonic()
        if done:
            code = os.waitstatus_to_exitcode(status)
            words = log.read_text(errors="replace")
            return Ended(code, words, now - (sent or began), used)
        if now > stop:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            words = f"Hung.\n{log.read_text(errors='replace')}"
            return Ended(1, words, now - began, used)
        if after is not None and used > after and not sent:
            os.kill(pid, number)
            sent = now
        time.sleep(0.002)


def processor_time(pid: int) -> float:
    """Of a process and its threads; on a busy machine no other clock tells how far.

    Linux numbers the clock of a process so.
    """
    return time.clock_gettime(~pid << 3 | 2)


def _be_the_child(work: Callable[[], object], log: Path) -> None:
    code = 1
    try:
        os.setsid()
        _end_with(os.getppid())
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        faulthandler.dump_traceback_later(0.9 * PATIENCE)  # Where it hangs.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # If this runs under `nohup`.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:  # Before the command began, or after it had ended.
        code = POLITE
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
        self.failures: list[str] = []
        self.slowest_stop = 0.0
        self.window = 0.0
        self.log = home / f"{self._slug}.log"
        self.clock = None if job.waits else processor_time
        self.kills = self.sent = self.compared = 0
        self._number = 0
        self.expected, self.seconds = self._unharmed()
        self.window = self.seconds
        self._fresh()

    def _unharmed(self) -> tuple[dict[str, object], float]:
        """The files of a command that nobody touched, and how long it took."""
        self._fresh()  # What it compiles was compiled when it was preloaded.
        ended = child(self._command, self.log, None, clock=self.clock)
        if ended.code:
            raise SystemExit(f"{self.job.name} fails by itself:\n{ended.words}")
        return self.job.result(self.place), ended.used

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

    def kill(self) -> None:
        """Starts the command, or goes on with it, and sends a signal.

        A command that goes on has less to do than one that starts. So the moments are
        drawn from a window that follows: it shrinks when the command was done first.
        """
        name = SIGNALS[self.sent % len(SIGNALS)]
        number, after = getattr(signal, name), self.random.uniform(0, self.window)
        ended = child(self._command, self.log, after, number, self.clock)
        self.sent += 1
        problem = "" if ended.tidy else f"code {ended.code}: {ended.words[-600:]}"
        if name != "SIGKILL":
            self.slowest_stop = max(self.slowest_stop, ended.seconds)
        # By a child: no thread of JAX may run in the process that forks.
        looked = child(self._look, self.log, None)
        problem = problem or (looked.words if looked.code else "")
        if problem:
            self._failed(f"{name} after {after:.3f} s: {problem}")
        elif ended.code == 0:
            self.window = max(0.7 * self.window, 0.1 * self.seconds)
            self.finish()
        else:
            self.window = min(1.05 * self.window, self.seconds)
            self.kills += 1
            if self.kills % self.job.each == 0:
                self.complete()

    def finish(self) -> None:
        """Compares the files of a command that is done."""
        found = self.job.result(self.place)
        if found != self.expected:
            names = {*found, *self.expected}
            differ = [n for n in names if found.get(n) != self.expected.get(n)]
            self._failed(f"{', '.join(sorted(differ))} differ")
        else:
            self.compared += 1
            shutil.rmtree(self.place)
        self._fresh()

    def _failed(self, words: str) -> None:
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

    def row(self) -> dict[str, object]:
        """A row of the table."""
        return {
            "command": self.job.name,
            "sent": self.sent,
            "kills": self.kills,
            "compared": self.compared,
            "wrong": len(self.failures),
            "seconds_unharmed": round(self.seconds, 2),
            "slowest_stop": round(self.slowest_stop, 2),
            "failures": self.failures,
        }


def soak(args: argparse.Namespace) -> list[dict]:
    """Kills until there were enough, or the time is over; one command after another.

    The command that is furthest behind its share comes next, so that all get theirs
    whenever the time is over.
    """
    before = _table(args.json)
    seed = args.seed + sum(row["sent"] for row in before.values())
    source, stop = random.Random(seed), time.monotonic() + 60 * args.minutes
    jobs = [job for job in JOBS if not args.only or job.name in args.only]
    wanted = args.kills / sum(job.share for job in jobs)
    with tempfile.TemporaryDirectory(prefix="hyperirl-soak-") as folder:
        preload(jobs, Path(folder))
        soaked = [Soak(job, Path(folder), source) for job in jobs]
        rows = before
        while time.monotonic() < stop:
            behind = min(soaked, key=lambda one: one.kills / one.job.share)
            if behind.kills >= wanted * behind.job.share:
                break
            behind.kill()
            rows = before | _added(before, soaked)
            _write(args.json, list(rows.values()))
        for one in soaked:
            one.complete()
            print(json.dumps(one.row() | {"failures": len(one.failures)}), flush=True)
        rows = before | _added(before, soaked)
        _write(args.json, list(rows.values()))
    return list(rows.values())


def preload(jobs: list[Job], home: Path) -> None:
    """Imports what commands import while they run, so that their children need not.

    Not jaxlib's: they start threads, which a process that forks must not have.
    """
    for number, job in enumerate(jobs):
        place, log = home / f"preload-{number}", home / "preload.log"
        place.mkdir()
        job.prepare(place)
        child(lambda job=job, place=place: _list_modules(job, place), log, None)
        for name in (place / "modules").read_text().splitlines():
            if not name.startswith("jaxlib"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)


def _list_modules(job: Job, place: Path) -> None:
    known = set(sys.modules)
    try:
        job.run(place, hyperirl)
    finally:
        names = sorted(set(sys.modules) - known)
        (place / "modules").write_text("\n".join(names))


def _table(path: Path | None) -> dict[str, dict]:
    """The rows of an earlier piece, by command."""
    if path is None or not path.exists():
        return {}
    return {row["command"]: row for row in json.loads(path.read_text())}


def _added(before: dict[str, dict], soaked: list[Soak]) -> dict[str, dict]:
    """The rows of this piece, with those of the earlier ones in them."""
    summed = ("sent", "kills", "compared", "wrong", "failures")
    found = {}
    for new in (one.row() for one in soaked):
        old = before.get(
            new["command"], new | dict.fromkeys(summed, 0) | {"failures": []}
        )
        slower = max(old["slowest_stop"], new["slowest_stop"])
        both = {name: old[name] + new[name] for name in summed}
        found[new["command"]] = new | both | {"slowest_stop": slower}
    return found


def _write(path: Path | None, rows: list[dict]) -> None:
    if path is not None:
        path.write_text(json.dumps(rows, indent=2) + "\n")


def main() -> None:
    """Prints a line for each kind; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="that hit a command")
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
