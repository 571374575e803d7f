"""Puts deliberate bugs into a copy of the package, one at a time, and runs its tests.

    python scripts/mutate.py --json mutants.json          # All of them.
    python scripts/mutate.py report runs                  # Those whose file has a word.
    python scripts/mutate.py --minutes 5 --json mutants.json    # Goes on another time.

`mutations.toml` says what is wrong, in which file, which line becomes which, and the
tests that must notice. The one that fails must pass without the bug, which is tried
next. A bug that they do not notice is a test that is missing; one that they give no
answer to in time is not noticed either.
"""

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutations.toml")
CACHE = Path(tempfile.gettempdir()) / "hyperirl-mutants-cache"  # Compiled programs.
os.environ |= {
    # As a worker of a larger run: compiled programs are shared, see `conftest.py`.
    "PYTEST_XDIST_WORKER": "gw0",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_ENABLE_X64": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "OPENBLAS_NUM_THREADS": "1",
}
for name in ("jax", "equinox", "optax", "beartype", "gymnasium", "tyro", "pytest"):
    importlib.import_module(name)  # Once for all bugs; they start no thread.

import pytest  # noqa: E402

NOTICED, NOT_NOTICED, SLOW = "noticed", "NOT NOTICED", "NO ANSWER"
OUT_OF_DATE, BROKEN = "OUT OF DATE", "BROKEN TESTS"  # No such line; they always fail.


@dataclasses.dataclass(frozen=True)
class Bug:
    """One line that becomes another, and the tests that must fail then."""

    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def id(self) -> str:
        """Another one for a bug that was changed."""
        text = json.dumps(dataclasses.astuple(self))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        """Of the package; files beside the folders are the top."""
        return self.file.split("/")[0] if "/" in self.file else "top"

    @contextlib.contextmanager
    def planted(self, package: Path) -> Iterator[bool]:
        """In a copy, for a while; `False` unless the line is there exactly once."""
        path = package / self.file
        text = path.read_text() if path.exists() else ""
        if text.count(self.old) != 1:
            yield False
            return
        path.write_text(text.replace(self.old, self.new))
        try:
            yield True
        finally:
            path.write_text(text)


def outcome(bug: Bug, copy: Path, sound: dict[str, bool], timeout: float) -> str:
    """What becomes of a bug, in words.

    Args:
        bug: What is wrong.
        copy: Of the source. There is one for all bugs, so that Python compiles it once.
        sound: Tests that were tried without a bug, and whether they passed.
        timeout: Seconds for its tests.
    """
    with bug.planted(copy / "hyperirl") as there:
        if not there:
            return OUT_OF_DATE
        words = shlex.split(bug.tests)
        code, failed = run_tests(words, copy, timeout)
    if code is None:
        return SLOW
    if code == 0:
        return NOT_NOTICED
    for test in failed or [bug.tests]:  # None if nothing could be imported.
        if test not in sound:
            again = [test] if failed else ["--collect-only", *words]
            sound[test] = run_tests(again, copy, timeout)[0] == 0
        if not sound[test]:
            return BROKEN
    return NOTICED


def run_tests(
    tests: list[str], source: Path, timeout: float
) -> tuple[int | None, list[str]]:
    """Pytest's exit code, `None` if the tests took too long; and what failed first.

    They run in a fork of this process, which has imported everything but the package.
    """
    stop, told = time.monotonic() + timeout, source.with_name("failed")
    told.write_text("")
    pid = os.fork()
    if not pid:
        _be_the_tests(tests, source, told)
    while time.monotonic() < stop:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), told.read_text().splitlines()
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):  # And what it has started.
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None, []


@dataclasses.dataclass(frozen=True)
class Teller:
    """Writes down what fails; a plugin of pytest's."""

    place: Path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test."""
        self.pytest_collectreport(report)

    def pytest_collectreport(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> None:
        """A file that cannot be imported."""
        if report.failed:
            with self.place.open("a") as file:
                file.write(f"{report.nodeid}\n")


def _be_the_tests(words: list[str], source: Path, told: Path) -> None:
    code = 1
    try:
        os.setsid()
        os.environ["PYTHONPATH"] = str(source)  # Of processes that tests start.
        sys.path.insert(0, str(source))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *words], plugins=[Teller(told)]))
    finally:
        os._exit(code)


def chosen(listed: Path, words: list[str]) -> list[Bug]:
    """The bugs of a list whose file or name has one of the words."""
    bugs = [Bug(**bug) for bug in tomllib.loads(listed.read_text())["bug"]]
    fits = lambda bug: any(word in f"{bug.file} {bug.what}" for word in words)
    bugs = [bug for bug in bugs if not words or fits(bug)]
    turn = {bug: [b for b in bugs if b.tests == bug.tests].index(bug) for bug in bugs}
    return sorted(bugs, key=lambda bug: (turn[bug], bug.tests))  # All tests take turns.


def table(bugs: list[Bug], found: dict[str, str]) -> str:
    """How many were noticed, folder by folder."""
    tried = [bug for bug in bugs if bug.id in found]
    noticed = collections.Counter(b.folder for b in tried if found[b.id] == NOTICED)
    total = collections.Counter(bug.folder for bug in tried)
    rows = [f"| {name} | {noticed[name]} | {total[name]} |" for name in sorted(total)]
    rows += [f"| together | {noticed.total()} | {total.total()} |"]
    return "\n".join(["| folder | noticed | tried |", "|---|---|---|", *rows])


def main() -> None:
    """Tries the bugs that were not tried before, and prints the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="in the file or the name of a bug")
    parser.add_argument("--list", type=Path, default=LIST, help="of bugs")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a bug")
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    parser.add_argument("--json", type=Path, help="what was found; goes on from there")
    args = parser.parse_args()
    bugs, stop = chosen(args.list, args.words), time.monotonic() + 60 * args.minutes
    known = args.json is not None and args.json.exists()
    found: dict[str, str] = json.loads(args.json.read_text()) if known else {}
    sound: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="hyperirl-mutants-") as folder:
        copy = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        for bug in sorted(bugs, key=lambda bug: bug.id in found):  # New ones first.
            if found.get(bug.id) == NOTICED or time.monotonic() > stop:
                continue
            began = time.monotonic()
            found[bug.id] = outcome(bug, copy, sound, args.timeout)
            seconds = time.monotonic() - began
            words = f"{found[bug.id]:13} {bug.file}: {bug.what} ({seconds:.0f} s)"
            print(words, flush=True)
            if args.json is not None:
                args.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(bugs, found))
    count = sum(found.get(bug.id) == NOTICED for bug in bugs)
    print(f"{count} of {len(bugs)} bugs were noticed.")
    raise SystemExit(0 if count == len(bugs) else 1)


if __name__ == "__main__":
    main()
