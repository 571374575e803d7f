"""Commands to be killed: how each starts, goes on, and what it must have written."""

import contextlib
import dataclasses
import functools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperirl import demos
from hyperirl.runs import RunFolder, load_metadata

Main = Callable[[list[str]], None]

_CLOCKS = ("seconds", "started", "throughput", "per_second")


@dataclasses.dataclass(frozen=True)
class Job:
    """A command that may be started again in its folder until it is done.

    Attributes:
        name: What the table calls it.
        share: Of all kills.
        each: Kills after which it is left alone, to be done and compared.
        waits: Whether other processes do the work; only the wall's clock says how far.
    """

    name: str
    share: float
    each: int
    waits: bool = dataclasses.field(default=False, kw_only=True)

    def prepare(self, place: Path) -> None:
        """Makes what the command starts from."""

    def run(self, place: Path, main: Main) -> None:
        """The command, in a child."""
        raise NotImplementedError

    def damage(self, place: Path) -> str:
        """What is wrong with what a kill left behind; nothing, if nothing is."""
        return ""

    def result(self, place: Path) -> dict[str, Any]:
        """What two commands that did the same have in common."""
        raise NotImplementedError


@functools.cache
def cached(what: str) -> Path:
    """A file or folder that others start from, made once by a process of its own."""
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="hyperirl-soak-sources-"))
    program = f"import sys, soak_jobs; soak_jobs.{what}(soak_jobs.Path(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(place / "it")]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return next(place.glob("it*"))


def make_tabular_demos(path: Path) -> None:
    """Of a small MDP."""
    demos.save(demos.collect("tabular", 40, seed=0), path.with_suffix(".npz"))


def make_cartpole_demos(path: Path) -> None:
    """Of Gymnasium's, by a rule: push to where the pole falls."""
    import gymnasium
    import numpy as np

    random, env = np.random.default_rng(0), gymnasium.make("CartPole-v1")
    episodes = []
    for seed in range(8):
        seen, taken, over = [env.reset(seed=seed)[0]], [], False
        while not over and len(taken) < 40:
            follow = int(seen[-1][2] + seen[-1][3] > 0)
            taken.append(follow if random.random() < 0.8 else 1 - follow)
            observation, _, over, _, _ = env.step(taken[-1])
            seen.append(observation)
        states, chosen = np.asarray(seen, np.float32), np.asarray(taken, np.int32)
        episodes.append(demos.Episode(states, chosen, terminated=bool(over)))
    demos.save(demos.from_episodes(episodes), path.with_suffix(".npz"))


def make_run(path: Path) -> None:
    """A finished run."""
    from hyperirl.learning import learn

    shown = str(cached("make_tabular_demos"))
    learn("tabular", shown, steps=6, agent_episodes=16, out=path, progress=False)


def without_clocks(value: Any) -> Any:
    """A document without what depends on the time it took."""
    if isinstance(value, dict):
        kept = {n: v for n, v in value.items() if not any(c in n for c in _CLOCKS)}
        return {name: without_clocks(item) for name, item in kept.items()}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


def whole_files(place: Path) -> dict[str, Any]:
    """All files below a folder: their bytes, or their rows without the clock."""
    found: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        if not path.is_file() or path.name.endswith((".part", ".lock", "lock")):
            continue
        name = str(path.relative_to(place))
        if path.suffix == ".jsonl":
            lines = path.read_text().splitlines()
            found[name] = [without_clocks(json.loads(line)) for line in lines]
        elif path.suffix == ".json":
            found[name] = without_clocks(json.loads(path.read_text()))
        else:
            found[name] = path.read_bytes()
    return found


@dataclasses.dataclass(frozen=True)
class Learn(Job):
    """`learn`, and then `resume` until it is done."""

    env: str = "tabular"
    source: str = "make_tabular_demos"
    options: tuple[str, ...] = ()

    def run(self, place: Path, main: Main) -> None:
        out = place / "run"
        if (out / "config.json").exists() and self._has_demos(out):
            return main(["resume", str(out)])
        with contextlib.suppress(FileNotFoundError):  # Killed before it was a run.
            for path in out.iterdir():
                path.unlink()
        shown = ["--demos", str(cached(self.source))]
        words = ["learn", "--env", self.env, *shown, "--out", str(out)]
        return main([*words, *self.options])

    def _has_demos(self, out: Path) -> bool:
        """They are kept after the config is written."""
        return (out / "demos.npz").exists()

    def prepare(self, place: Path) -> None:
        cached(self.source)

    def damage(self, place: Path) -> str:
        out = place / "run"
        if not (out / "config.json").exists():
            return ""
        folder = RunFolder.open(out)
        steps = [row["step"] for row in folder.metrics()]
        if steps != list(range(1, len(steps) + 1)):
            return f"rows of steps {steps}"
        if (out / "checkpoint.npz").exists():
            saved = load_metadata(out / "checkpoint.npz")["step"]
            if saved > len(steps):
                return f"a checkpoint of step {saved} and rows to {len(steps)}"
        return ""

    def result(self, place: Path) -> dict[str, Any]:
        files = whole_files(place / "run")
        files.pop("checkpoint.previous.npz", None)  # Of the step of the last stop.
        kept = ("npz", "jsonl")
        return {name: data for name, data in files.items() if name.endswith(kept)}


@dataclasses.dataclass(frozen=True)
class OfRun(Job):
    """A command that reads a finished run and writes some files."""

    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def prepare(self, place: Path) -> None:
        import shutil

        shutil.copytree(cached("make_run"), place / "run")

    def run(self, place: Path, main: Main) -> None:
        words = [word.replace("PLACE", str(place)) for word in self.words]
        main(words)

    def damage(self, place: Path) -> str:
        for name in self.files:
            path = place / name
            if path.suffix == ".json" and path.exists():
                json.loads(path.read_text())
            if path.suffix == ".html" and path.exists():
                if not path.read_text().rstrip().endswith("</html>"):
                    return f"{name} is torn"
        return ""

    def result(self, place: Path) -> dict[str, Any]:
        files = whole_files(place)
        return {name: self._plain(place, files.get(name)) for name in self.files}

    def _plain(self, place: Path, data: Any) -> Any:
        """Pages name the folder they were made in."""
        if not isinstance(data, bytes):
            return data
        return data.replace(str(place).encode(), b"PLACE").replace(
            place.name.encode(), b"PLACE"
        )


@dataclasses.dataclass(frozen=True)
class Export(OfRun):
    """`export`, which overwrites nothing: what a kill left is removed first."""

    def run(self, place: Path, main: Main) -> None:
        import shutil

        shutil.rmtree(place / "out", ignore_errors=True)
        super().run(place, main)

    def damage(self, place: Path) -> str:
        for path in (place / "out").glob("[a-z]*.npz"):
            load_metadata(path)
        return ""


@dataclasses.dataclass(frozen=True)
class Convert(OfRun):
    """`demos convert`, from one format into three."""

    def prepare(self, place: Path) -> None:
        cached("make_tabular_demos")

    def run(self, place: Path, main: Main) -> None:
        source = str(cached("make_tabular_demos"))
        for name in ("a.npz", "b.csv"):
            words = ["demos", "convert", source, str(place / name), "--overwrite"]
            main(words)
        if not (place / "c-v0").exists():
            main(["demos", "convert", source, str(place / "c-v0")])

    def damage(self, place: Path) -> str:
        if (place / "a.npz").exists():
            demos.load(place / "a.npz")
        if (place / "c-v0").exists():
            demos.load(place / "c-v0")
        if (place / "b.csv").exists():
            lines = (place / "b.csv").read_bytes()
            return "" if lines.endswith(b"\n") else "a torn table"
        return ""

    def result(self, place: Path) -> dict[str, Any]:
        files = whole_files(place)
        return {name: files.get(name) for name in ("a.npz", "b.csv")}


@dataclasses.dataclass(frozen=True)
class Checkpoints(Job):
    """Checkpoints one after the other, all entries of each the same number."""

    count: int = 30

    def run(self, place: Path, main: Main) -> None:
        del main
        import jax.numpy as jnp

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # This is no command.
        first = load_metadata(self._path(place))["step"] if self._exists(place) else 0
        folder = RunFolder(place / "run", {}, {})
        for step in range(first + 1, self.count + 1):
            array = jnp.full((1 << 17,), step, jnp.int32)
            folder.append_metrics({"step": step})
            folder.save_checkpoint({"a": array, "b": jnp.int32(step)}, step)

    def _path(self, place: Path) -> Path:
        return place / "run" / "checkpoint.npz"

    def _exists(self, place: Path) -> bool:
        return self._path(place).exists()

    def prepare(self, place: Path) -> None:
        (place / "run").mkdir()

    def damage(self, place: Path) -> str:
        from hyperirl import archive

        if not self._exists(place):
            return ""
        step = load_metadata(self._path(place))["step"]
        arrays = archive.read(self._path(place), ["tree['a']", "tree['b']"])
        wrong = [n for n, array in arrays.items() if not (array == step).all()]
        return f"{wrong} of another step than {step}" if wrong else ""

    def result(self, place: Path) -> dict[str, Any]:
        return {"checkpoint.npz": self._path(place).read_bytes()}


@dataclasses.dataclass(frozen=True)
class Sweep(Job):
    """`sweep` of two runs, by processes of its own."""

    def prepare(self, place: Path) -> None:
        cached("make_tabular_demos")

    def run(self, place: Path, main: Main) -> None:
        shown = ["--demos", str(cached("make_tabular_demos"))]
        words = ["sweep", "--env", "tabular", *shown, "--set", "damping=1,10"]
        words += ["--seeds", "1", "--workers", "2", "--steps", "6"]
        main([*words, "--agent-episodes", "16", "--out", str(place / "sweep")])

    def result(self, place: Path) -> dict[str, Any]:
        files = whole_files(place / "sweep")
        kept = ("reward.npz", "policy.npz", "checkpoint.npz")
        return {name: data for name, data in files.items() if name.endswith(kept)}


@dataclasses.dataclass(frozen=True)
class Reproduce(Job):
    """`reproduce`, of two of the problems that it takes."""

    def run(self, place: Path, main: Main) -> None:
        from hyperirl.experiments import identities

        every = identities.cells
        identities.cells = lambda *words: every(*words)[:2]
        words = ["reproduce", "identities", "--workers", "2"]
        main([*words, "--out", str(place / "results")])

    def result(self, place: Path) -> dict[str, Any]:
        files = whole_files(place / "results")
        kept = ("results.json", "table.md")
        found = {n: data for n, data in files.items() if n.endswith(kept)}
        for document in found.values():
            if isinstance(document, dict):
                document.pop("command", None)
        return found


def make_pendulum_demos(path: Path) -> None:
    """Of MuJoCo's inverted pendulum, by a rule: push to where the pole falls."""
    import gymnasium
    import numpy as np

    random, env = np.random.default_rng(0), gymnasium.make("InvertedPendulum-v5")
    episodes = []
    for seed in range(8):
        seen, taken, over = [env.reset(seed=seed)[0]], [], False
        while not over and len(taken) < 30:
            force = 10 * seen[-1][1] + seen[-1][3] + 0.3 * random.normal()
            taken.append(np.clip([force], -2.9, 2.9))
            observation, _, over, _, _ = env.step(taken[-1])
            seen.append(observation)
        states, chosen = np.asarray(seen, np.float32), np.asarray(taken, np.float32)
        episodes.append(demos.Episode(states, chosen, terminated=bool(over)))
    demos.save(demos.from_episodes(episodes), path.with_suffix(".npz"))


_SMALL = ("--steps", "24", "--agent-episodes", "16", "--no-adaptive")
_TINY = (
    *("--steps", "6", "--agent-episodes", "4", "--inner-updates", "1"),
    *("--no-adaptive", "--policy-hidden", "8", "--reward-hidden", "8"),
)
_EVALUATE = ("evaluate", "PLACE/run", "--budget", "8192", "--seeds", "1")
JOBS: tuple[Job, ...] = (
    Checkpoints("checkpoint", 0.17, 5),
    OfRun("report", 0.17, 5, words=("report", "PLACE/run"), files=("run/report.html",)),
    Convert("convert", 0.12, 4),
    Export(
        "export",
        0.12,
        4,
        words=("export", "PLACE/run", "--to", "PLACE/out"),
        files=("out/reward.npz", "out/policy.npz", "out/hyperirl_numpy.py"),
    ),
    Learn("learn", 0.13, 8, options=_SMALL),
    Learn(
        "learn gym:CartPole-v1",
        0.07,
        8,
        env="gym:CartPole-v1",
        source="make_cartpole_demos",
        options=_TINY,
    ),
    Learn(
        "learn gym:InvertedPendulum-v5",
        0.06,
        8,
        env="gym:InvertedPendulum-v5",
        source="make_pendulum_demos",
        options=_TINY,
    ),
    OfRun(
        "evaluate",
        0.06,
        6,
        words=(*_EVALUATE, "--no-transfer"),
        files=("run/evaluation.json",),
    ),
    Sweep("sweep", 0.05, 5, waits=True),
    Reproduce("reproduce", 0.05, 5, waits=True),
)
