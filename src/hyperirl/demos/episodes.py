"""Demonstrations one episode at a time: what every reader hands over.

A file may leave out what an episode needs: the observation after the last action, or
whether the task was over. It is made up here, in the one way, and
`Provenance.missing` says so.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import from_flat
from hyperirl.demos.provenance import MISSING, Provenance


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """One episode in plain arrays, as it was recorded."""

    observations: np.ndarray
    """`(steps + 1, ...)`, or `(steps, ...)` if the last one was not recorded."""
    actions: np.ndarray
    """`(steps,)` whole numbers, or `(steps, act)` floating-point numbers."""
    rewards: np.ndarray | None = None
    """The true ones, `(steps,)`, if known."""
    terminated: bool | None = None
    """Whether the task was over at the end, rather than cut off; `None`: not known."""
    log_probs: np.ndarray | None = None
    """Of the actions, under whoever chose them, `(steps,)`, if known."""
    steps: np.ndarray | None = None
    """The number of each step, if they were numbered."""

    @property
    def num_steps(self) -> int:
        """How many actions there are."""
        return len(self.actions) if self.actions.ndim else 0


def from_episodes(
    episodes: Sequence[Episode], provenance: Provenance | None = None
) -> Demos:
    """Demonstrations, checked: all of them or a `DemosError`."""
    if not episodes:
        raise DemosError("There are no episodes; give at least one.")
    provenance = Provenance() if provenance is None else provenance
    missing = {*provenance.missing, *(name for e in episodes for name in _missing(e))}
    arrays = {
        "observations": [_observations(episode) for episode in episodes],
        "actions": [episode.actions for episode in episodes],
        "rewards": _known([episode.rewards for episode in episodes], "rewards"),
        "expert_log_probs": _known(
            [e.log_probs for e in episodes], "log-probabilities"
        ),
    }
    given = {name: rows for name, rows in arrays.items() if rows is not None}
    for name, rows in given.items():
        extra = int(name == "observations")
        _check_rows(name, rows, [episode.num_steps + extra for episode in episodes])
    flat = {name: np.concatenate(rows) for name, rows in given.items()}
    flat["lengths"] = np.asarray([episode.num_steps for episode in episodes], np.int64)
    flat["terminated"] = np.asarray([bool(e.terminated) for e in episodes])
    listed = tuple(name for name in MISSING if name in missing)
    return from_flat(flat, dataclasses.replace(provenance, missing=listed))


def from_arrays(
    observations: Sequence[np.ndarray],
    actions: Sequence[np.ndarray],
    *,
    rewards: Sequence[np.ndarray] | None = None,
    terminated: Sequence[bool] | None = None,
    expert_log_probs: Sequence[np.ndarray] | None = None,
    provenance: Provenance | None = None,
) -> Demos:
    """Demonstrations from lists of arrays, one array an episode.

    Args:
        observations: `(steps + 1, obs)` each: what was seen before each action, and
            after the last one. If that was not recorded, `(steps, obs)`.
        actions: `(steps,)` whole numbers each, or `(steps, act)` floats.
        rewards: The true ones, if known, `(steps,)` each; used for evaluation only.
        terminated: Whether the task was over at the end (false: merely cut off).
        expert_log_probs: Of the actions, under whoever chose them, if known.
        provenance: Where the episodes come from.
    """
    given = {
        "observations": observations,
        "rewards": rewards,
        "terminated": terminated,
        "expert_log_probs": expert_log_probs,
    }
    for name, episodes in given.items():
        if episodes is not None and len(episodes) != len(actions):
            raise DemosError(
                f"`{name}` has {len(episodes)} episodes and `actions` has "
                f"{len(actions)}; give one entry for each episode in both."
            )
    row = lambda rows, i: None if rows is None else np.asarray(rows[i])
    return from_episodes(
        [
            Episode(
                observations=np.asarray(observations[i]),
                actions=np.asarray(actions[i]),
                rewards=row(rewards, i),
                terminated=None if terminated is None else bool(terminated[i]),
                log_probs=row(expert_log_probs, i),
            )
            for i in range(len(actions))
        ],
        provenance,
    )


def _has_last(episode: Episode) -> bool:
    return len(np.atleast_1d(episode.observations)) != episode.num_steps


def _missing(episode: Episode) -> Iterator[str]:
    """What an episode lacks, in the order of `MISSING`."""
    steps = () if episode.steps is None else episode.steps
    lacks = (
        not _has_last(episode),
        episode.terminated is None,
        np.any(np.diff(steps) != 1),
    )
    yield from (name for name, lacking in zip(MISSING, lacks, strict=True) if lacking)


def _observations(episode: Episode) -> np.ndarray:
    """As vectors, with a last one: the one before it, if it was not recorded."""
    rows = episode.observations
    if rows.ndim != 2 and rows.ndim and len(rows):
        rows = rows.reshape(len(rows), -1)
    rows = _floats(rows)
    if _has_last(episode) or not rows.ndim:
        return rows
    return np.concatenate([rows, rows[-1:]])


def _floats(array: np.ndarray) -> np.ndarray:
    """Whole numbers and booleans as floating-point numbers."""
    return array.astype(np.float32) if array.dtype.kind in "iub" else array


def _known(rows: list[np.ndarray | None], name: str) -> list[np.ndarray] | None:
    """Of all episodes, or of none."""
    known = [_floats(row) for row in rows if row is not None]
    if known and len(known) < len(rows):
        raise DemosError(
            f"Only {len(known)} of {len(rows)} episodes have {name}; give them for all "
            "episodes or for none."
        )
    return known or None


def _check_rows(name: str, episodes: list[np.ndarray], lengths: list[int]) -> None:
    for number, (episode, length) in enumerate(zip(episodes, lengths, strict=True)):
        if np.shape(episode)[:1] != (length,):
            raise DemosError(
                f"`{name}` of episode {number} has shape {np.shape(episode)}, but "
                f"{length} rows are expected beside its actions; there is one more "
                "observation than actions, and one of everything else for each."
            )
        if episode.shape[1:] != episodes[0].shape[1:]:
            raise DemosError(
                f"`{name}` of episode {number} has rows of shape {episode.shape[1:]}, "
                f"those of episode 0 have {episodes[0].shape[1:]}; all episodes must "
                "come from the same environment."
            )
