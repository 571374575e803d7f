"""Datasets of Minari, without installing it.

A folder `data` holds `metadata.json`, and the episodes: in one file of HDF5, or in one
folder each with a file of Arrow. Minari itself would make the environment that the
metadata name, which runs code; here they are only read.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hyperirl.demos import arrow, hdf5
from hyperirl.demos.demos import Demos
from hyperirl.demos.episodes import Episode, from_episodes
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flattening import Columns, flatten
from hyperirl.demos.minari_writing import SUFFIX as SUFFIX
from hyperirl.demos.minari_writing import write as write
from hyperirl.demos.provenance import Provenance
from hyperirl.demos.reading import check_size, parse_json, read_json, refusing

_ID = re.compile(r"([-_\w]+/)*[-_\w]+-v\d+")
_METADATA, _HDF5 = "metadata.json", "main_data.hdf5"
_FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")


def find(name: str, *, download: bool) -> Path | None:
    """The folder of a dataset by its id; `None` if there is none.

    Args:
        name: Such as `"CartPole/expert-v0"`.
        download: Fetches it if it is not on this machine; that needs Minari itself.
    """
    if not _ID.fullmatch(name):
        return None
    home = Path.home() / ".minari" / "datasets"
    folder = Path(os.environ.get("MINARI_DATASETS_PATH", home)) / name
    if not folder.is_dir() and download:
        _download(name)
    return folder if folder.is_dir() else None


def _download(name: str) -> None:
    try:
        import minari

        minari.download_dataset(name)
    except ImportError as error:
        raise DemosError(
            f"Downloading {name} needs minari, which is not installed; run `pip "
            "install 'hyperirl[demos]'`."
        ) from error
    except Exception as error:  # Whatever the network makes Minari raise.
        reason = " ".join(str(error).split())[:120]
        raise DemosError(
            f"Cannot download {name} ({reason}); check its name and the network."
        ) from error


def recognizes(path: Path) -> bool:
    """Whether it is a dataset, its folder `data`, or its file of HDF5."""
    if path.is_file():
        with open(path, "rb") as file:
            return file.read(len(hdf5.START)) == hdf5.START
    return (path / _METADATA).is_file() or (path / "data" / _METADATA).is_file()


def read(path: Path) -> Demos:
    """The demonstrations in a dataset."""
    with refusing(path):
        folder = path.parent if path.is_file() else path
        if (folder / "data" / _METADATA).is_file():
            folder = folder / "data"
        metadata = read_json(folder / _METADATA)
        space = metadata.get("observation_space")
        if not isinstance(space, str):
            raise DemosError(f"{_METADATA} says no observation space; copy it again.")
        space = parse_json(space, "the observation space")
        match metadata.get("data_format", "hdf5"):
            case "hdf5":
                records = list(_read_hdf5(folder / _HDF5))
            case "arrow":
                records = list(_read_arrow(folder))
            case other:
                raise DemosError(
                    f"Its data are in the format {str(other)[:40]!r}, and HDF5 and "
                    "Arrow are read; convert them with Minari."
                )
        episodes = [_episode(record, space, i) for i, record in enumerate(records)]
        return from_episodes(episodes, _provenance(metadata, episodes))


def _read_hdf5(path: Path) -> Iterator[dict[str, Columns]]:
    with hdf5.opened(path) as file:
        for name in _in_order(file.names(), r"episode_(\d{1,9})"):
            found = {field: file.columns(name, field) for field in _FIELDS}
            found["log_probs"] = file.columns(name, "infos", "expert_log_probs")
            yield {field: value for field, value in found.items() if value is not None}


def _read_arrow(folder: Path) -> Iterator[dict[str, Columns]]:
    names = _in_order((path.name for path in folder.iterdir()), r"(\d{1,9})")
    files = [folder / name / "part-0.arrow" for name in names]
    check_size(sum(file.stat().st_size for file in files if file.is_file()))
    for file in files:
        columns = arrow.read_columns(file, _FIELDS)
        found = {name: np.asarray(rows) for name, rows in columns.items()}
        for name in set(found) - {"observations"}:
            found[name] = found[name][:-1]  # Padded to the number of observations.
        yield dict(found)


def _in_order(names, pattern: str) -> list[str]:
    matched = [(re.fullmatch(pattern, name), name) for name in names]
    return [name for _, name in sorted((int(m[1]), name) for m, name in matched if m)]


def _episode(record: dict[str, Columns], space: dict[str, Any], number: int) -> Episode:
    if absent := [field for field in _FIELDS if field not in record]:
        raise DemosError(f"Episode {number} has no `{absent[0]}`; copy it again.")
    arrays = {name: value for name, value in record.items() if name != "observations"}
    if wrong := [name for name, value in arrays.items() if isinstance(value, dict)]:
        raise DemosError(
            f"`{wrong[0]}` has several parts, and one list or vector is needed; "
            "flatten them."
        )
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    terminations, log_probs = plain["terminations"], plain.get("log_probs")
    if terminations.dtype != bool or terminations.ndim != 1 or not len(terminations):
        raise DemosError(
            f"`terminations` of episode {number} is no list of true and false; copy it "
            "again."
        )
    return Episode(
        observations=flatten(space, record["observations"], "observations"),
        actions=plain["actions"],
        rewards=None if np.all(np.isnan(plain["rewards"])) else plain["rewards"],
        terminated=bool(terminations[-1]),
        log_probs=None if log_probs is None else log_probs[1:],
    )


def _provenance(metadata: dict[str, Any], episodes: list[Episode]) -> Provenance:
    ours = metadata.get("hyperirl")
    if isinstance(ours, str):
        return Provenance.from_json(ours)
    text = lambda name: str(metadata.get(name) or "not recorded")[:200]
    spec = metadata.get("env_spec")
    spec = parse_json(spec, "`env_spec`") if isinstance(spec, str) else {}
    environment, horizon = spec.get("id"), spec.get("max_episode_steps")
    longest = max((episode.num_steps for episode in episodes), default=0)
    fits = type(horizon) is int and horizon >= longest
    return Provenance(
        environment=environment[:200] if isinstance(environment, str) else None,
        options=kwargs if isinstance(kwargs := spec.get("kwargs"), dict) else {},
        horizon=horizon if fits else None,
        expert=f"Minari {text('dataset_id')}, algorithm: {text('algorithm_name')}",
    )
