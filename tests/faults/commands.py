"""Commands that read the folder of a run, one file of which may come from anybody.

What takes long after everything was read is left out: learning, training, playing.
"""

import contextlib
import dataclasses
import io
import json
import shutil
import warnings
from pathlib import Path
from unittest import mock

from fuzzing import damaged, damaged_inside, damaged_json

from hyperirl import demos, films
from hyperirl.cli import main
from hyperirl.learning import evaluating, learn, loop
from hyperirl.report import ReportServer


def make_run(home: Path) -> Path:
    """A short run of a small MDP, learned and evaluated by the commands' own code."""
    demos.save(demos.collect("tabular", 40, seed=0), home / "tabular.npz")
    path = home / "run"
    learn("tabular", str(home / "tabular.npz"), steps=3, agent_episodes=16, out=path)
    main(["evaluate", str(path), "--budget=8192", "--seeds=1", "--no-transfer"])
    return path


class Worked(Exception):
    """Everything was read, and the work would begin."""


def works(*_, **__):
    raise Worked


def serve_once(server: ReportServer) -> None:
    """Draws the page as a visitor would see it."""
    status, page = server.page()
    if status != 200:
        told = page.partition('<p class="lead">')[2].partition("</p>")[0]
        raise ValueError(told)


@dataclasses.dataclass
class Command:
    """A command, and the file of its run that is damaged.

    Attributes:
        words: `RUN`, `DEMOS`, `FILE` and `OUT` become places.
        file: In the folder of the run.
        source: The folder that is copied.
    """

    words: str
    file: str
    source: Path | None = None

    @property
    def name(self) -> str:
        """What tables call it."""
        short = " ".join(w for w in self.words.split() if w.islower() and w[0] != "-")
        return f"{short}: {self.file}"

    def write(self, folder: Path) -> Path:
        """A copy of the run, and the file to damage in it."""
        assert self.source is not None
        run = shutil.copytree(self.source, folder / "run", dirs_exist_ok=True)
        (run / "checkpoint.previous.npz").unlink(missing_ok=True)  # Nothing to fall to.
        return run / self.file

    def read(self, path: Path) -> None:
        """Runs the command; its refusal is a `ValueError` of what it said."""
        out = path.parent.parent / "out"
        places = {"RUN": path.parent, "DEMOS": path.parent / "demos.npz", "FILE": path}
        places |= {"OUT": out, "OUT.csv": f"{out}.csv"}
        words = [str(places.get(word, word)) for word in self.words.split()]
        said, nowhere = io.StringIO(), io.StringIO()
        try:
            with (
                _without_work(),
                contextlib.redirect_stderr(said),
                contextlib.redirect_stdout(nowhere),
            ):
                main(words)
        except Worked:
            pass
        except SystemExit as error:
            told = said.getvalue()
            assert error.code == 2, f"code {error.code}: {told}"
            assert told.startswith("hyperirl: ") and told.endswith("\n"), told
            raise ValueError(told[:-1]) from error
        finally:
            shutil.rmtree(out, ignore_errors=True)

    def damaged(self, content, random):
        """One to three wounds, or a hostile value."""
        if self.file.endswith(".npz"):
            return (damaged, damaged_inside)[random.integers(2)](content, random)
        if random.random() < 0.3:
            return damaged(content, random)
        lines = content.splitlines() if self.file.endswith(".jsonl") else [content]
        place = random.integers(len(lines))
        lines[place] = damaged_json(json.loads(lines[place]), random).encode()
        return b"\n".join(lines) + b"\n"


@contextlib.contextmanager
def _without_work():
    with (
        warnings.catch_warnings(),
        mock.patch.object(loop, "_share_done", works),
        mock.patch.object(evaluating, "ranking_for", works),
        mock.patch.object(films, "play", works),
        mock.patch.object(ReportServer, "serve_forever", serve_once),
    ):
        warnings.simplefilter("ignore")
        yield


_FILES = {
    "report RUN": "config.json provenance.json evaluation.json picture.json "
    "metrics.jsonl",
    "watch RUN --port 0": "config.json evaluation.json metrics.jsonl",
    "compare RUN": "config.json evaluation.json metrics.jsonl",
    "resume RUN": "config.json provenance.json metrics.jsonl demos.npz checkpoint.npz",
    "evaluate RUN": "config.json provenance.json demos.npz reward.npz policy.npz",
    "play RUN --overwrite": "config.json demos.npz policy.npz",
    "export RUN --to OUT": "config.json reward.npz policy.npz",
    "score RUN DEMOS": "config.json reward.npz",
    "score RUN FILE": "demos.npz",
    "demos inspect FILE": "demos.npz",
    "demos convert FILE OUT.csv --overwrite": "demos.npz",
}
COMMANDS = [Command(w, f) for w, files in _FILES.items() for f in files.split()]
