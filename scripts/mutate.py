"""Puts deliberate bugs into a copy of the package, one at a time, and runs its tests.

    python scripts/mutate.py                     # All of them.
    python scripts/mutate.py report runs         # Those whose file or name has a word.

`mutations.toml` says what is wrong, in which file, which line becomes which, and the
tests that must notice. A bug that they do not notice is a test that is missing.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutations.toml")
NOTICED, OUT_OF_DATE = "noticed", "OUT OF DATE"  # The line is not there any more.
SLOW = -1  # A busy machine is no proof that a test notices.
FAILED, INTERRUPTED = 1, 2  # Pytest's codes for failed tests, and for a broken import.


@dataclass(frozen=True)
class Bug:
    """One line that becomes another, and the tests that must fail then."""

    what: str
    file: str
    old: str
    new: str
    tests: str

    def plant(self, package: Path) -> bool:
        """Changes the copy; `False` unless the line is there exactly once."""
        path = package / self.file
        text = path.read_text() if path.exists() else ""
        path.write_text(text.replace(self.old, self.new))
        return text.count(self.old) == 1


def outcome(bug: Bug, cache: Path, timeout: float) -> str:
    """What becomes of a bug, in words."""
    with tempfile.TemporaryDirectory(prefix="hyperirl-mutant-") as folder:
        copy = Path(folder) / "src"
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", copy, ignore=skipped)
        if not bug.plant(copy / "hyperirl"):
            return OUT_OF_DATE
        code = run_tests(bug.tests, copy, cache, timeout)
    found = {0: "NOT NOTICED", FAILED: NOTICED, INTERRUPTED: NOTICED, SLOW: "NO ANSWER"}
    return found.get(code, "NO SUCH TESTS")


def run_tests(tests: str, source: Path, cache: Path, timeout: float) -> int:
    """Pytest's exit code, or that of tests which took too long to say anything."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "PYTHONPATH": str(source),
        # As a worker of a larger run: compiled programs are shared, see `conftest.py`.
        "PYTEST_XDIST_WORKER": "gw0",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    try:
        done = subprocess.run(
            [*command, "-p", "no:xdist", *shlex.split(tests)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return SLOW
    return done.returncode


def main() -> None:
    """Tries the bugs, and prints the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="in the file or the name of a bug")
    parser.add_argument("--cache", type=Path, help="folder of compiled programs")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a bug")
    args = parser.parse_args()
    listed = tomllib.loads(LIST.read_text())
    bugs = [Bug(**bug) for bug in listed["bug"]]
    if args.words:
        chosen = lambda bug: any(w in f"{bug.file} {bug.what}" for w in args.words)
        bugs = [bug for bug in bugs if chosen(bug)]
    count = 0
    with tempfile.TemporaryDirectory(prefix="hyperirl-mutants-") as folder:
        for bug in bugs:
            began = time.monotonic()
            found = outcome(bug, args.cache or Path(folder), args.timeout)
            count += found == NOTICED
            seconds = time.monotonic() - began
            line = f"{found:13} {bug.file}: {bug.what} ({seconds:.0f} s)"
            print(line, flush=True)
    print(f"{count} of {len(bugs)} bugs were noticed.")
    raise SystemExit(0 if count == len(bugs) else 1)


if __name__ == "__main__":
    main()
