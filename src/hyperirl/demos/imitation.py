"""Demonstrations of the library `imitation`, without installing it.

It writes a folder of `datasets`: `state.json` names streams of Arrow with one row an
episode. Older versions wrote one .npz file: the steps of all episodes in a row, cut at
`indices`. Both hold `infos` as pickles of some kind: they are never looked at.
"""

from pathlib import Path

import numpy as np

from hyperirl.demos import archive, arrow
from hyperirl.demos.demos import Demos
from hyperirl.demos.episodes import Episode, from_episodes
from hyperirl.demos.errors import DemosError
from hyperirl.demos.provenance import Provenance
from hyperirl.demos.reading import check_size, read_json, refusing

_NEEDED = ("obs", "acts", "terminal")
_STATE = "state.json"
_EXPERT = "read from imitation's format"


def recognizes(path: Path) -> bool:
    """Whether it is a folder of `datasets`, or an old archive."""
    return (path / _STATE).is_file() or {"obs", "acts", "indices"} <= {
        *archive.names(path)
    }


def read(path: Path) -> Demos:
    """The demonstrations in a folder or an old .npz file."""
    with refusing(path):
        episodes = _read_folder(path) if path.is_dir() else _read_archive(path)
        return _without_time_limits(episodes)


def _read_folder(path: Path) -> list[Episode]:
    files = read_json(path / _STATE).get("_data_files")
    if not isinstance(files, list) or not files:
        raise DemosError(f"{_STATE} names no data files; save the dataset again.")
    paths = [path / _safe_name(file) for file in files]
    check_size(sum(file.stat().st_size for file in paths if file.is_file()))
    parts = [arrow.read_columns(file, (*_NEEDED, "rews")) for file in paths]
    names = {name for part in parts for name in part}
    columns = {name: sum((part.get(name, []) for part in parts), []) for name in names}
    _check_names(columns)
    if len({len(rows) for rows in columns.values()}) != 1:
        raise DemosError("Its columns differ in length; save the dataset again.")
    rewards = columns.get("rews", [None] * len(columns["obs"]))
    terminal = _flags(np.asarray(columns["terminal"]))
    rows = zip(columns["obs"], columns["acts"], rewards, terminal, strict=True)
    return [Episode(*row) for row in rows]


def _safe_name(file: object) -> str:
    """A name in the folder itself, wherever the file claims to be."""
    name = file.get("filename") if isinstance(file, dict) else None
    if not isinstance(name, str) or Path(name).name != name:
        raise DemosError(
            f"{_STATE} names a data file that is not in the folder; save it again."
        )
    return name


def _flags(values: np.ndarray) -> list[bool]:
    if values.dtype != bool or values.ndim != 1:
        raise DemosError("`terminal` is not true or false; save the dataset again.")
    return values.tolist()


def _read_archive(path: Path) -> list[Episode]:
    arrays = archive.read(path, skip=("infos",))
    _check_names(arrays)
    cuts, terminal = arrays["indices"], arrays["terminal"]
    steps = len(np.atleast_1d(arrays["acts"]))
    if cuts.dtype.kind not in "iu" or cuts.ndim != 1:
        raise DemosError("`indices` is not a list of whole numbers; save it again.")
    bounds = np.concatenate([[0], cuts.astype(np.int64), [steps]])
    if np.any(np.diff(bounds) < 1) or terminal.shape != (len(bounds) - 1,):
        raise DemosError(
            f"`indices` does not cut {steps} steps into the {len(terminal)} episodes "
            "of `terminal`; save it again."
        )
    if len(arrays["obs"]) != steps + len(terminal):
        raise DemosError(
            f"`obs` has {len(arrays['obs'])} rows, and {steps} steps of "
            f"{len(terminal)} episodes need {steps + len(terminal)}; save it again."
        )
    after_last = cuts.astype(np.int64) + np.arange(len(cuts)) + 1
    acts = np.split(arrays["acts"], cuts)
    observations = np.split(arrays["obs"], after_last)
    rewards = [None] * len(acts)
    if "rews" in arrays:
        rewards = np.split(arrays["rews"], cuts)
    flags = _flags(terminal)
    return [
        Episode(*row) for row in zip(observations, acts, rewards, flags, strict=True)
    ]


def _check_names(columns: dict) -> None:
    if absent := [name for name in _NEEDED if name not in columns]:
        raise DemosError(
            f"There is no column `{absent[0]}`; imitation writes {', '.join(_NEEDED)}."
        )


def _without_time_limits(episodes: list[Episode]) -> Demos:
    """Demonstrations in which an end by the time limit is no end of the task.

    In imitation `terminal` is true at the time limit, too. Where several episodes end
    after the same, longest time, that was the limit.
    """
    lengths = [episode.num_steps for episode in episodes]
    longest = max(lengths, default=0)
    limit = longest if lengths.count(longest) > 1 else None
    cut = [
        Episode(
            episode.observations,
            episode.actions,
            episode.rewards,
            bool(episode.terminated) and episode.num_steps != limit,
        )
        for episode in episodes
    ]
    told = not any(episode.terminated for episode in episodes)
    missing = () if told else ("terminations",)
    return from_episodes(cut, Provenance(expert=_EXPERT, missing=missing))
