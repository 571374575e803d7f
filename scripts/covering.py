"""Which tests run which lines, and how long they take: a map for `mutate.py`.

    python scripts/covering.py --out covering.json                # Of all tests.
    python scripts/covering.py --out covering.json tests/demos    # Of these, once more.

It wants `coverage`, which is not a dependency: `pip install coverage`. Programs that
were compiled for one file of tests are forgotten before the next, for a function that
is compiled already does not run its lines. What tests start as other processes, and
what an import runs, is not seen.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hyperirl"
try:
    import coverage
except ImportError:
    raise SystemExit("This script wants coverage: pip install coverage") from None

from mutate import ENVIRONMENT  # noqa: E402

os.environ |= ENVIRONMENT

import jax  # noqa: E402
import pytest  # noqa: E402


class Mapper:
    """A plugin of pytest's that writes the map, after every file of tests."""

    def __init__(self, out: Path):
        self.out, self.file, self.began = out, "", 0.0
        self.failed: set[str] = set()
        known = json.loads(out.read_text()) if out.exists() else {}
        self.seconds: dict[str, float] = known.get("seconds", {})
        self.lines: dict[str, dict[str, list[int]]] = known.get("lines", {})
        self.written = time.monotonic()
        self.coverage = self._started()

    def _started(self) -> coverage.Coverage:
        started = coverage.Coverage(data_file=None, source=[str(PACKAGE)])
        started.set_option("run:disable_warnings", ["no-data-collected"])
        started.start()
        return started

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """Its lines have its name."""
        file = item.nodeid.split("::")[0]
        if file != self.file:
            self.keep()
            self.file = file
            jax.clear_caches()
        self.lines.pop(item.nodeid, None)
        self.coverage.switch_context(item.nodeid)
        self.began = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = round(time.monotonic() - self.began, 3)
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without a bug notices none: it is left out."""
        if report.failed:
            self.failed.add(report.nodeid)
            print(f"fails: {report.nodeid}", flush=True)

    def pytest_sessionfinish(self) -> None:
        """The last file."""
        self.written = 0
        self.keep()

    def keep(self) -> None:
        """Adds what the tests of a file have run."""
        self.coverage.stop()
        data = self.coverage.get_data()
        for path in data.measured_files():
            name = str(Path(path).relative_to(PACKAGE))
            for line, tests in sorted(data.contexts_by_lineno(path).items()):
                for test in filter(None, tests):
                    ran = self.lines.setdefault(test, {})
                    ran.setdefault(name, []).append(line)
        for test in self.failed:
            self.seconds.pop(test, None)
            self.lines.pop(test, None)
        self.coverage = self._started()
        if time.monotonic() > self.written + 120:
            part = self.out.with_suffix(".part")
            part.write_text(json.dumps({"seconds": self.seconds, "lines": self.lines}))
            part.replace(self.out)
            self.written = time.monotonic()


def main() -> None:
    """Runs the tests."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", default=["tests"], help="of pytest")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    sys.path.insert(0, str(PACKAGE.parent))
    os.environ["PYTHONPATH"] = str(PACKAGE.parent)  # Of processes that tests start.
    mapper = Mapper(args.out)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    raise SystemExit(pytest.main([*options, *args.tests], plugins=[mapper]))


if __name__ == "__main__":
    main()
