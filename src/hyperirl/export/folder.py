"""A folder with a reward, a policy and the one module that reads both."""

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any

from hyperirl import saving
from hyperirl.export.hyperirl_numpy import ExportError
from hyperirl.export.in_memory import numpy_policy, numpy_reward
from hyperirl.export.onnx_graph import policy_graph, reward_graph
from hyperirl.export.words import readme
from hyperirl.policies import AbstractPolicy
from hyperirl.rewards import AbstractReward
from hyperirl.runs import ArraysError, RunFolder, atomic, load_metadata

MODULE = "hyperirl_numpy.py"


@dataclasses.dataclass(frozen=True)
class Saved:
    """What there is to export, and what its files say about it."""

    reward: AbstractReward | None
    policy: AbstractPolicy | None
    about: dict[str, Any]


def export(source: str | Path, to: str | Path, *, onnx: bool = False) -> list[Path]:
    """Writes a reward, a policy, or both of a run, for NumPy alone; returns the files.

    Nothing is overwritten, and nothing is written if anything cannot be.

    Args:
        source: The folder of a run, or the file of a reward or of a policy.
        to: The folder to write into.
        onnx: Whether to write `.onnx` files too; needs the package onnx.
    """
    saved, to = _load(Path(source)), Path(to)
    made = _made(saved, onnx)
    parts = {"reward.npz": saved.reward, "policy.npz": saved.policy}
    names = [*(name for name, part in parts.items() if part is not None), *made]
    _check_free(to, names)
    to.mkdir(parents=True, exist_ok=True)
    if saved.reward is not None:
        about = saved.about | {"level_included": True}
        saving.save_reward(saved.reward, to / "reward.npz", metadata=about)
    if saved.policy is not None:
        saving.save_policy(saved.policy, to / "policy.npz", metadata=saved.about)
    for name, data in made.items():
        atomic.write_bytes(to / name, data)
    return [to / name for name in names]


def _load(source: Path) -> Saved:
    if source.is_dir():
        folder = RunFolder.open(source)
        files = {"reward": folder.reward_path, "policy": folder.policy_path}
        files = {what: path for what, path in files.items() if path.exists()}
        if not files:
            raise ExportError(
                f"{source} holds neither a reward nor a policy yet; let the run finish "
                f"a step, or continue it with `hyperirl resume {source}`."
            )
    else:
        files = {_what_is_in(source): source}
    reward = saving.load_reward(files["reward"]) if "reward" in files else None
    policy = saving.load_policy(files["policy"]) if "policy" in files else None
    about = load_metadata(next(iter(files.values()))).get("metadata")
    return Saved(reward, policy, about if isinstance(about, dict) else {})


def _what_is_in(path: Path) -> str:
    try:
        found = load_metadata(path).get("format")
    except ArraysError as error:
        raise ExportError(str(error)) from error
    return "policy" if found == "hyperirl policy" else "reward"


def _made(saved: Saved, onnx: bool) -> dict[str, bytes]:
    """The files beside the saved ones; raises if a class has no form in NumPy."""
    reward = None if saved.reward is None else numpy_reward(saved.reward)
    policy = None if saved.policy is None else numpy_policy(saved.policy)
    module = resources.files("hyperirl.export").joinpath(MODULE)
    words = readme(reward, policy, saved.about)
    made = {MODULE: module.read_bytes(), "README.md": words.encode()}
    if onnx and reward is not None:
        made["reward.onnx"] = reward_graph(reward)
    if onnx and policy is not None:
        made["policy.onnx"] = policy_graph(policy)
    return made


def _check_free(to: Path, names: list[str]) -> None:
    taken = [path for path in (to / name for name in names) if path.exists()]
    if to.exists() and not to.is_dir():
        taken = [to]
    if taken:
        raise ExportError(
            f"{taken[0]} already exists and is not overwritten; choose another folder."
        )
