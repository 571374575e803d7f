"""Demonstrations as a dataset that Minari reads."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import from_flat, to_flat

SUFFIX = ""
_VERSION = "0.5.0"  # Of Minari: what it wrote then, it reads ever since.


def write(demos: Demos, path: Path) -> None:
    """Writes all of the folder or, if that fails, nothing.

    Rewards that are not known are written as NaN. What is known about the expert is
    kept: its log-probabilities in `infos`, the rest in the metadata.
    """
    try:
        import h5py
    except ImportError as error:
        raise DemosError(
            f"Writing {path} needs h5py, which is not installed; run `pip install "
            "'hyperirl[demos]'`."
        ) from error
    flat = to_flat(demos)
    from_flat(flat, demos.provenance)  # What could not be read is not written.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    data = temporary / "data"
    try:
        data.mkdir(parents=True)
        with h5py.File(data / "main_data.hdf5", "w", track_order=True) as file:
            for number, episode in enumerate(_episodes(flat)):
                group = file.create_group(f"episode_{number}")
                group.attrs["id"] = number
                group.attrs["total_steps"] = len(episode["rewards"])
                for name, array in episode.items():
                    group.create_dataset(name, data=array)
        metadata = json.dumps(_metadata(demos, flat, path.name))
        (data / "metadata.json").write_text(metadata)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _episodes(flat: dict[str, np.ndarray]):
    """The datasets of each episode, by name."""
    ends = np.cumsum(flat["lengths"])
    for number, (end, steps) in enumerate(zip(ends, flat["lengths"], strict=True)):
        rows = slice(end - steps, end)
        last = np.arange(steps) == steps - 1
        unknown = np.full(steps, np.nan)
        episode = {
            "observations": flat["observations"][
                end - steps + number : end + number + 1
            ],
            "actions": flat["actions"][rows],
            "rewards": flat["rewards"][rows] if "rewards" in flat else unknown,
            "terminations": last & flat["terminated"][number],
            "truncations": last & ~flat["terminated"][number],
        }
        if "expert_log_probs" in flat:  # The first info is that of the reset.
            log_probs = np.pad(flat["expert_log_probs"][rows], (1, 0))
            episode["infos/expert_log_probs"] = log_probs
        yield episode


def _metadata(demos: Demos, flat: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    versioned = name if re.search(r"-v\d+$", name) else f"{name}-v0"
    return {
        "total_episodes": demos.num_episodes,
        "total_steps": int(np.sum(flat["lengths"])),
        "data_format": "hdf5",
        "observation_space": json.dumps(_box(flat["observations"].shape[1])),
        "action_space": json.dumps(_action_space(flat["actions"])),
        "dataset_id": re.sub(r"[^-\w]", "_", versioned),
        "algorithm_name": demos.provenance.expert or "not recorded",
        "author": ["hyperirl"],
        "minari_version": _VERSION,
        "hyperirl": demos.provenance.to_json(),
    }


def _action_space(actions: np.ndarray) -> dict[str, Any]:
    if actions.ndim == 2:
        return _box(actions.shape[1])
    choices = int(np.max(actions)) + 1
    return {"type": "Discrete", "dtype": "int64", "start": 0, "n": choices}


def _box(size: int) -> dict[str, Any]:
    """Any vector: the space is not known better than by what was seen."""
    bound = [float("inf")] * size
    low = [-number for number in bound]
    return {
        "type": "Box",
        "dtype": "float32",
        "shape": [size],
        "low": low,
        "high": bound,
    }
