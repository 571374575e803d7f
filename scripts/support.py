"""Builds, installs into empty environments, and learns: for each Python and version.

    python scripts/support.py --json support.json
    python scripts/support.py --only newest --pythons python3.11 python3.13

For every Python that is there: the wheel with the newest versions of its dependencies,
the source archive with the newest ones, and the wheel with the oldest ones that
`pyproject.toml` allows. Each environment then learns a reward, exports it and draws a
report. A Python that is not there is said to be missing; pyenv shows those that
`PYENV_VERSION` names.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13")
CASES = ("newest", "sdist", "oldest")
PATIENCE = 3600  # Seconds for a command; a busy machine compiles for long.
LEARN = "learn --env lqr --steps 2 --inner-updates 1 --no-adaptive --agent-episodes 4"
COMMANDS = (
    "--version",
    f"{LEARN} --out run",
    "report run",
    "export run --to exported",
    "demos inspect cartpole",
)


def oldest() -> list[str]:
    """Each dependency at the lowest version that is allowed, and for which Python."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = re.compile(r"^([A-Za-z0-9_.-]+)>=([0-9.]+)[^;]*(;.*)?$")
    found = [lowest.match(line) for line in listed["dependencies"]]
    return [f"{match[1]}=={match[2]}{match[3] or ''}" for match in found if match]


def build(place: Path) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    maker = place / "maker"
    _run([sys.executable, "-m", "venv", str(maker)])
    python = str(maker / "bin" / "python")
    _run([python, "-m", "pip", "install", "-q", "build"])
    _run([python, "-m", "build", "-q", "--outdir", str(place / "dist"), str(ROOT)])
    dist = place / "dist"
    return next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))


def try_one(python: str, case: str, package: Path, place: Path) -> dict:
    """Installs and runs; a row of the table."""
    began, row = time.monotonic(), {"python": python, "case": case, "wrong": 0}
    home = place / f"{python}-{case}"
    binaries = home / "env" / "bin"
    pins = oldest() if case == "oldest" else []
    try:
        _run([python, "-m", "venv", str(home / "env")])
        pip = [str(binaries / "python"), "-m", "pip"]
        _run([*pip, "install", "-q", str(package), *pins])
        for words in COMMANDS:
            _run([str(binaries / "hyperirl"), *words.split()], cwd=home)
        frozen = _run([*pip, "freeze", "--all"]).splitlines()
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines() or [""]
        row |= {"wrong": 1, "said": " ".join(map(str, error.cmd[-6:])), "why": said[-1]}
    except subprocess.TimeoutExpired as error:
        row |= {"wrong": 1, "said": " ".join(map(str, error.cmd[-6:])), "why": "slow"}
    else:
        main = {line.split("==")[0] for line in oldest()} | {"jaxlib"}
        row["versions"] = [v for v in frozen if v.split("==")[0].lower() in main]
    shutil.rmtree(home / "env", ignore_errors=True)  # Half a gigabyte each.
    return row | {"seconds": round(time.monotonic() - began)}


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return done.stdout


def main() -> None:
    """Prints a row for each environment; the exit code is 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pythons", nargs="*", default=PYTHONS, help="programs")
    parser.add_argument("--only", nargs="*", default=CASES, choices=CASES)
    parser.add_argument("--json", type=Path, help="where the table goes")
    args = parser.parse_args()
    rows: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="hyperirl-support-") as folder:
        place = Path(folder)
        wheel, archive = build(place)
        for python in args.pythons:
            if shutil.which(python) is None:
                rows.append({"python": python, "case": "not there", "wrong": 0})
                print(rows[-1], flush=True)
                continue
            for case in args.only:
                package = archive if case == "sdist" else wheel
                rows.append(try_one(python, case, package, place))
                print(rows[-1], flush=True)
                if args.json is not None:
                    args.json.write_text(json.dumps(rows, indent=2) + "\n")
    raise SystemExit(1 if any(row["wrong"] for row in rows) else 0)


if __name__ == "__main__":
    main()
