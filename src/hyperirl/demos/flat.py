"""Demonstrations as flat arrays: the steps of all episodes, one after the other.

This is how they are stored and how users bring their own, and the one place where bad
numbers are found. With `episodes` episodes and `total = sum(lengths)` steps:

| array              | shape                       | type                              |
|--------------------|-----------------------------|-----------------------------------|
| `observations`     | `(total + episodes, obs)`   | float: one more than actions each |
| `actions`          | `(total,)` or `(total, act)`| integer, or float vectors         |
| `lengths`          | `(episodes,)`               | integer: actions of each episode  |
| `terminated`       | `(episodes,)`               | bool                              |
| `rewards`          | `(total,)`                  | float, optional                   |
| `expert_log_probs` | `(total,)`                  | float, optional                   |
"""

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.provenance import Provenance
from hyperirl.trajectories import Trajectories

REQUIRED = ("observations", "actions", "lengths", "terminated")
OPTIONAL = ("rewards", "expert_log_probs")
# Padding to the longest episode must not blow a small file up: 4 GB of float32.
_MAX_PADDED = 2**30


def from_flat(
    arrays: Mapping[str, np.ndarray], provenance: Provenance | None = None
) -> Demos:
    """Checks flat arrays and pads them; `DemosError` says what is wrong with them."""
    _check_names(arrays)
    lengths = _lengths(arrays["lengths"])
    steps, episodes = int(np.sum(lengths)), len(lengths)
    observations = _floats(arrays, "observations", 2, steps + episodes)
    actions = _actions(arrays, steps)
    terminated = _terminated(arrays["terminated"], episodes)
    optional = {
        name: _floats(arrays, name, 1, steps) for name in OPTIONAL if name in arrays
    }
    provenance = Provenance() if provenance is None else provenance
    longest, horizon = int(np.max(lengths)), provenance.horizon
    if horizon is not None and longest > horizon:
        raise DemosError(
            f"An episode has {longest} steps, but the recorded horizon is {horizon}; "
            "cut the episode there, or correct the horizon."
        )
    if (longest + 1) * episodes * max(observations.shape[1], 1) > _MAX_PADDED:
        raise DemosError(
            f"{episodes} episodes padded to the longest, {longest} steps, do not fit "
            "in memory; cut the longest episodes into several, or load fewer."
        )
    mask = np.arange(longest)[None, :] < lengths[:, None]
    padded = lambda name: _pad(optional[name], mask) if name in optional else None
    with_last = np.arange(longest + 1)[None, :] <= lengths[:, None]
    trajectories = Trajectories(
        observations=_pad(observations, with_last),
        actions=_pad(actions, mask),
        mask=jnp.asarray(mask),
        terminated=jnp.asarray(terminated),
        rewards=padded("rewards"),
    )
    return Demos(trajectories, provenance, padded("expert_log_probs"))


def to_flat(demos: Demos) -> dict[str, np.ndarray]:
    """The arrays of `from_flat`, without the padding; `float32` and `int32`."""
    batch = demos.trajectories
    mask = np.asarray(batch.mask)
    lengths = mask.sum(axis=1).astype(np.int32)
    with_last = np.arange(batch.num_steps + 1)[None, :] <= lengths[:, None]
    number = np.int32 if batch.discrete else np.float32
    arrays = {
        "observations": np.asarray(batch.observations, np.float32)[with_last],
        "actions": np.asarray(batch.actions, number)[mask],
        "lengths": lengths,
        "terminated": np.asarray(batch.terminated, bool),
    }
    if batch.rewards is not None:
        arrays["rewards"] = np.asarray(batch.rewards, np.float32)[mask]
    if demos.expert_log_probs is not None:
        log_probs = np.asarray(demos.expert_log_probs, np.float32)
        arrays["expert_log_probs"] = log_probs[mask]
    return arrays


def _check_names(arrays: Mapping[str, np.ndarray]) -> None:
    if missing := [name for name in REQUIRED if name not in arrays]:
        raise DemosError(
            f"There is no array {_listed(missing)}; demonstrations need "
            f"{_listed(REQUIRED)}."
        )
    if extra := sorted(set(arrays) - {*REQUIRED, *OPTIONAL}):
        raise DemosError(
            f"There is an unknown array {_listed(extra)}; leave it out or correct its "
            f"name: beside {_listed(REQUIRED)} there may be {_listed(OPTIONAL)}."
        )


def _lengths(lengths: np.ndarray) -> np.ndarray:
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise DemosError(
            f"`lengths` is {_what(lengths)}; it must be a list of whole numbers, the "
            "number of actions of each episode."
        )
    if not len(lengths):
        raise DemosError("There are no episodes; give at least one.")
    if (bad := np.flatnonzero(lengths < 1)).size:
        raise DemosError(
            f"Episode {bad[0]} has length {lengths[bad[0]]}; every episode needs at "
            "least one action, so leave that one out."
        )
    if (bad := np.flatnonzero(lengths > _MAX_PADDED)).size:
        raise DemosError(
            f"Episode {bad[0]} has length {lengths[bad[0]]}, which cannot be right; "
            "correct `lengths`."
        )
    return lengths.astype(np.int64)


def _terminated(terminated: np.ndarray, episodes: int) -> np.ndarray:
    if terminated.dtype != bool or terminated.shape != (episodes,):
        raise DemosError(
            f"`terminated` is {_what(terminated)}; it must be {episodes} booleans, one "
            "for each episode: whether the task was over (true) or merely cut off."
        )
    return terminated


def _actions(arrays: Mapping[str, np.ndarray], steps: int) -> np.ndarray:
    actions = arrays["actions"]
    if actions.dtype.kind == "f" and actions.ndim == 2:
        return _floats(arrays, "actions", 2, steps)
    if actions.dtype.kind not in "iu" or actions.ndim != 1:
        raise DemosError(
            f"`actions` is {_what(actions)}; discrete actions must be a list of whole "
            "numbers, continuous ones a (steps, size) array of floats."
        )
    _check_rows("actions", actions, steps)
    if (bad := np.flatnonzero((actions < 0) | (actions >= 2**31))).size:
        raise DemosError(
            f"Action {actions[bad[0]]} at step {bad[0]} is no choice; discrete actions "
            "are numbered from 0."
        )
    return actions.astype(np.int32)


def _floats(
    arrays: Mapping[str, np.ndarray], name: str, ndim: int, rows: int
) -> np.ndarray:
    array = arrays[name]
    if array.dtype.kind != "f" or array.ndim != ndim:
        wanted = "a list" if ndim == 1 else "a (steps, size) array"
        raise DemosError(
            f"`{name}` is {_what(array)}; it must be {wanted} of floating-point "
            "numbers."
        )
    _check_rows(name, array, rows)
    if 0 in array.shape:
        raise DemosError(f"`{name}` is {_what(array)}: its rows hold no numbers.")
    with np.errstate(all="ignore"):  # What overflows is found below.
        array = array.astype(np.float32)
    if not np.all(finite := np.isfinite(array)):
        row = int(np.argwhere(~finite)[0][0])
        raise DemosError(
            f"`{name}` has NaN, infinite or huge values, the first in row {row}; "
            "correct them or leave that episode out."
        )
    return array


def _check_rows(name: str, array: np.ndarray, rows: int) -> None:
    if len(array) != rows:
        kind = "steps + 1 of every episode" if name == "observations" else "all steps"
        raise DemosError(
            f"`{name}` has {len(array)} rows, but `lengths` asks for {rows} ({kind}); "
            "correct the one that is wrong."
        )


def _pad(flat: np.ndarray, mask: np.ndarray) -> Array:
    padded = np.zeros((*mask.shape, *flat.shape[1:]), flat.dtype)
    padded[mask] = flat
    return jnp.asarray(padded)


def _what(array: np.ndarray) -> str:
    return f"an array of type {array.dtype} and shape {array.shape}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name[:40]}`" for name in names[:8])
