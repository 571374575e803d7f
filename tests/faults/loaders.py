"""What reads files that may come from anybody: each writes one, and reads it back."""

import json
import shutil
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from fuzzing import damaged, damaged_inside, damaged_json

from hyperirl import demos, saving
from hyperirl.curvature import load_sketch, save_sketch, sketch_rows
from hyperirl.learning.config import complete, from_json
from hyperirl.options import Options
from hyperirl.policies import mlp_policy
from hyperirl.rewards import mlp_reward, standalone
from hyperirl.runs import RunFolder
from hyperirl.spaces import Box, Discrete
from hyperirl.tasks import as_task

STATE = {"weights": jnp.arange(12.0).reshape(3, 4), "key": jr.key(3)}
FIXTURES = Path(__file__).parent.parent / "demos" / "fixtures"


class Loader:
    def named(self, path):
        """What an error must name."""
        return str(path)

    def damaged(self, content, random):
        return (damaged, damaged_inside)[random.integers(2)](content, random)


def some_demos():
    flat = {
        "observations": np.ones((10, 4), np.float32),
        "actions": np.array([0, 1, 1, 0, 1, 0, 1], np.int32),
        "lengths": np.array([4, 1, 2], np.int32),
        "terminated": np.array([True, False, True]),
    }
    return demos.from_flat(flat, demos.Provenance(environment="cartpole"))


class Demonstrations(Loader):
    def write(self, folder):
        demos.save(some_demos(), folder / "demos.npz")
        return folder / "demos.npz"

    def read(self, path):
        return demos.load(path)


class Reward(Loader):
    def write(self, folder):
        reward = mlp_reward(3, Discrete(2), key=jr.key(0), hidden=(4,), clamp=2.0)
        return saving.save_reward(standalone(reward, Discrete(2), 0.5), folder / "r")

    def read(self, path):
        return saving.load_reward(path)


class APolicy(Loader):
    def write(self, folder):
        space = Box(2, -1.0, 1.0)
        policy = mlp_policy(3, space, key=jr.key(0), hidden=(4,), squash=True)
        return saving.save_policy(policy, folder / "p")

    def read(self, path):
        return saving.load_policy(path)


class ASketch(Loader):
    def write(self, folder):
        rows = jr.normal(jr.key(1), (11, 5))
        return save_sketch(sketch_rows(rows, size=2, buffer=4), folder / "s.npz")

    def read(self, path):
        return load_sketch(path)


class Checkpoint(Loader):
    def write(self, folder):
        RunFolder.create(folder / "run", {}, []).save_checkpoint(STATE, 4)
        return folder / "run" / "checkpoint.npz"

    def read(self, path):
        return RunFolder.open(path.parent).load_checkpoint(STATE)


class Table(Loader):
    def write(self, folder):
        demos.save(some_demos(), folder / "demos.csv")
        return folder / "demos.csv"

    def read(self, path):
        return demos.load(path)

    def damaged(self, content, random):
        return damaged(content, random)


class Folder(Loader):
    """Demonstrations in a folder, one file of which is damaged."""

    fixture = file = ""

    def write(self, folder):
        shutil.copytree(FIXTURES / self.fixture, folder / "demos", dirs_exist_ok=True)
        return folder / "demos" / self.file

    def root(self, path):
        return path.parents[len(Path(self.file).parts) - 1]

    def named(self, path):
        return str(self.root(path))

    def read(self, path):
        return demos.load(self.root(path))

    def damaged(self, content, random):
        if self.file.endswith(".json") and random.random() < 0.7:
            return damaged_json(json.loads(content), random).encode()
        return damaged(content, random)


class Imitation(Folder):
    fixture, file = "imitation-cartpole", "data-00000-of-00001.arrow"


class MinariArrow(Folder):
    fixture, file = "minari-cartpole-arrow", "data/0/part-0.arrow"


class MinariMetadata(Folder):
    fixture, file = "minari-cartpole-arrow", "data/metadata.json"


class MinariHDF5(Folder):
    file = "data/main_data.hdf5"

    def write(self, folder):
        demos.save(some_demos(), folder / "demos")
        return folder / "demos" / self.file


class Document(Loader):
    """A document of a run's folder."""

    file = ""

    def write(self, folder):
        task = as_task("tabular")
        run = RunFolder.create(folder / "run", complete(Options(), task).to_json(), [])
        for step in range(1, 5):
            run.append_metrics({"step": step, "outer_loss": 1.5 / step, "snr": None})
        run.save_json("evaluation.json", {"gap": {"mean": 1.0}, "transfer": {}})
        return run.path / self.file

    def damaged(self, content, random):
        if random.random() < 0.4:
            return damaged(content, random)
        return damaged_json(json.loads(content), random).encode()


class ConfigFile(Document):
    file = "config.json"

    def read(self, path):
        return from_json(RunFolder.open(path.parent).config, path)

    def named(self, path):
        return ""  # Some settings are refused as those that were typed.


class ProvenanceFile(Document):
    file = "provenance.json"

    def read(self, path):
        return RunFolder.open(path.parent)

    def named(self, path):
        return str(path.parent)


class EvaluationFile(Document):
    file = "evaluation.json"

    def read(self, path):
        return RunFolder.open(path.parent).load_json("evaluation.json")


class MetricsFile(Document):
    file = "metrics.jsonl"

    def read(self, path):
        return RunFolder.open(path.parent).metrics()

    def damaged(self, content, random):
        if random.random() < 0.4:
            return damaged(content, random)
        lines = content.splitlines()
        place = random.integers(len(lines))
        lines[place] = damaged_json(json.loads(lines[place]), random).encode()
        return b"\n".join(lines) + b"\n"


ARCHIVES = [Demonstrations(), Reward(), APolicy(), ASketch(), Checkpoint()]
OTHERS = [
    Table(),
    Imitation(),
    MinariArrow(),
    MinariMetadata(),
    MinariHDF5(),
    ConfigFile(),
    ProvenanceFile(),
    EvaluationFile(),
    MetricsFile(),
]
LOADERS = [*ARCHIVES, *OTHERS]
