"""Puts deliberate bugs into a copy of the package, one at a time, and runs its tests.

    python scripts/mutate.py --json mutants.json          # All of them.
    python scripts/mutate.py report runs                  # Those whose file has a word.
    python scripts/mutate.py --minutes 5 --json mutants.json    # Goes on another time.
    python scripts/mutate.py --list mutations_new.toml --map covering.json    # Quicker.

`mutations.toml` says what is wrong, in which file, which line becomes which, and the
tests that must notice; by default those of `tests_of.toml`. The one that fails must
pass without the bug, which is tried next. A bug that they do not notice is a test that
is missing; one that they give no answer to in time is not noticed either.

With a map (`covering.py` draws it) the tests that run a line of the bug come first, the
quickest files of them before the others.
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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutations.toml")
CACHE = Path(tempfile.gettempdir()) / "hyperirl-mutants-cache"  # Compiled programs.
ENVIRONMENT = {
    # As a worker of a larger run: compiled programs are shared, see `conftest.py`.
    "PYTEST_XDIST_WORKER": "gw0",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "OPENBLAS_NUM_THREADS": "1",
}
os.environ |= ENVIRONMENT
for name in ("jax", "equinox", "optax", "beartype", "gymnasium", "tyro", "pytest"):
    importlib.import_module(name)  # Once for all bugs; they start no thread.

import pytest  # noqa: E402
from fresh_mutations import tests_of  # noqa: E402

NOTICED, NOT_NOTICED, SLOW = "noticed", "NOT NOTICED", "NO ANSWER"
OUT_OF_DATE, BROKEN = "OUT OF DATE", "BROKEN TESTS"  # No such line; they always fail.
_FEW = 8.0  # Seconds of a file that come before the rest of it.
_NOTHING = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


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

    def lines(self, package: Path) -> range:
        """Those that it is in."""
        text = (package / self.file).read_text()
        first = text[: text.index(self.old)].count("\n") + 1
        return range(first, first + self.old.count("\n") + 1)

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


@dataclasses.dataclass(frozen=True)
class Map:
    """Which tests run which lines, and how many seconds they take."""

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[str, list[int]]]

    def running(self, file: str, lines: range, listed: tuple[str, ...]) -> list[str]:
        """Tests that run a line.

        Listed ones come first; then a few seconds of each file before the rest of any;
        then files that take less time.
        """
        taken: collections.Counter[str] = collections.Counter()
        place: dict[str, tuple] = {}
        for test in sorted(self.lines, key=self.seconds.__getitem__):
            if not set(lines).isdisjoint(self.lines[test].get(file, ())):
                taken[_file(test)] += self.seconds[test]
                place[test] = not test.startswith(listed), taken[_file(test)] > _FEW
        key = lambda test: (*place[test], taken[_file(test)], _file(test))
        return sorted(place, key=key)


def _file(test: str) -> str:
    return test.split("::")[0]


@dataclasses.dataclass(frozen=True)
class Order:
    """A plugin of pytest's: runs these tests only, in this order; or all but these."""

    tests: list[str]
    others: bool = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drops and sorts them."""
        place = {test: i for i, test in enumerate(self.tests)}
        kept = [i for i in items if (i.nodeid in place) != self.others]
        items[:] = sorted(kept, key=lambda item: place.get(item.nodeid, 0))


def outcome(
    bug: Bug, copy: Path, sound: dict[str, bool], timeout: float, known: Map
) -> str:
    """What becomes of a bug, in words.

    Args:
        bug: What is wrong.
        copy: Of the source. There is one for all bugs, so that Python compiles it once.
        sound: Tests that were tried without a bug, and whether they passed.
        timeout: Seconds for its tests.
        known: Which tests run its lines.
    """
    package, listed = copy / "hyperirl", shlex.split(bug.tests)
    stop, code, failed, words = time.monotonic() + timeout, None, [], listed
    with bug.planted(package) as there:
        if not there:
            return OUT_OF_DATE
        lines = bug.lines(ROOT / "src" / "hyperirl")
        first = known.running(bug.file, lines, tuple(listed))
        for order in (Order(first), Order(first, others=True)):
            words = listed if order.others else list(dict.fromkeys(map(_file, first)))
            left = stop - time.monotonic()
            if not words or left <= 0:
                continue
            code, failed = run_tests(words, copy, left, order)
            if code not in _NOTHING:
                break
    if code is None:
        return SLOW
    if code in _NOTHING:
        return NOT_NOTICED
    for test in failed or [bug.tests]:  # None if nothing could be imported.
        if test not in sound:
            again = [test] if failed else ["--collect-only", *words]
            sound[test] = run_tests(again, copy, timeout)[0] == 0
        if not sound[test]:
            return BROKEN
    return NOTICED


def run_tests(
    tests: list[str], source: Path, timeout: float, order: Order | None = None
) -> tuple[int | None, list[str]]:
    """Pytest's exit code, `None` if the tests took too long; and what failed first.

    They run in a fork of this process, which has imported everything but the package.
    """
    stop, told = time.monotonic() + timeout, source.with_name("failed")
    told.write_text("")
    pid = os.fork()
    if not pid:
        _be_the_tests(tests, source, [Teller(told), *([order] if order else [])])
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


def _be_the_tests(words: list[str], source: Path, plugins: list[Any]) -> None:
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
        code = int(pytest.main([*options, *words], plugins=plugins))
    finally:
        os._exit(code)


def chosen(listed: Path, words: list[str]) -> list[Bug]:
    """The bugs of a list whose file or name has one of the words."""
    found = tomllib.loads(listed.read_text())["bug"]
    bugs = [Bug(**{"tests": tests_of(bug["file"])} | bug) for bug in found]
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
    parser.add_argument("--map", type=Path, help="of the tests that run a line")
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    parser.add_argument("--json", type=Path, help="what was found; goes on from there")
    args = parser.parse_args()
    bugs, stop = chosen(args.list, args.words), time.monotonic() + 60 * args.minutes
    drawn = {"seconds": {}, "lines": {}}
    tests = Map(**(json.loads(args.map.read_text()) if args.map else drawn))
    known = args.json is not None and args.json.exists()
    found: dict[str, str] = json.loads(args.json.read_text()) if known else {}
    sound = dict.fromkeys(tests.seconds, True)  # They passed when the map was drawn.
    with tempfile.TemporaryDirectory(prefix="hyperirl-mutants-") as folder:
        copy = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        for bug in sorted(bugs, key=lambda bug: bug.id in found):  # New ones first.
            if found.get(bug.id) == NOTICED or time.monotonic() > stop:
                continue
            began = time.monotonic()
            found[bug.id] = outcome(bug, copy, sound, args.timeout, tests)
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
