"""Demonstrations at a glance."""

import dataclasses
import math

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.loading import environment_of
from hyperirl.spaces import Box, Discrete
from hyperirl.trajectories import returns


@dataclasses.dataclass(frozen=True)
class Spread:
    """How some numbers are distributed."""

    minimum: float
    mean: float
    deviation: float
    maximum: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """What demonstrations hold, in plain numbers."""

    num_episodes: int
    num_steps: int
    lengths: Spread
    num_terminated: int
    returns: Spread | None
    """Undiscounted, of the true reward."""
    observations: tuple[Spread, ...]
    """Of each component."""
    action_shares: tuple[float, ...] | None
    """How often each choice was taken, if actions are choices."""
    actions: tuple[Spread, ...] | None
    """Of each component, if actions are vectors."""
    expert_nll: Spread | None
    """Of an episode, undiscounted, under the expert."""
    uniform_nll: float | None
    """The mean of the same under uniform actions, where there are such."""


def summarize(demos: Demos) -> Summary:
    """Counts and ranges; the padding does not count."""
    batch = demos.trajectories
    mask, lengths = np.asarray(batch.mask), np.asarray(batch.lengths)
    observations = np.asarray(batch.observations)[:, :-1][mask]
    actions = np.asarray(batch.actions)[mask]
    returned, nll = None, demos.expert_nll
    if batch.rewards is not None:
        returned = _spread(returns(batch, batch.rewards))
    return Summary(
        num_episodes=batch.num_episodes,
        num_steps=int(np.sum(lengths)),
        lengths=_spread(lengths),
        num_terminated=int(np.sum(np.asarray(batch.terminated))),
        returns=returned,
        observations=_columns(observations),
        action_shares=_shares(demos, actions) if batch.discrete else None,
        actions=None if batch.discrete else _columns(actions),
        expert_nll=None if nll is None else _spread(nll),
        uniform_nll=_uniform_nll(demos, float(np.mean(lengths))),
    )


def _shares(demos: Demos, actions: np.ndarray) -> tuple[float, ...]:
    environment = environment_of(demos.provenance)
    space = None if environment is None else environment.action_space
    least = space.num_actions if isinstance(space, Discrete) else 0
    counts = np.bincount(actions, minlength=least)
    return tuple(float(count) / len(actions) for count in counts)


def _uniform_nll(demos: Demos, mean_length: float) -> float | None:
    environment = environment_of(demos.provenance)
    if environment is None:
        return None
    space = environment.action_space
    if not isinstance(space, Box):
        return mean_length * math.log(space.num_actions)
    if not math.isfinite(space.high - space.low):
        return None
    return mean_length * space.size * math.log(space.high - space.low)


def _columns(rows: np.ndarray) -> tuple[Spread, ...]:
    return tuple(_spread(column) for column in rows.T)


def _spread(values) -> Spread:
    values = np.asarray(values, np.float64)
    return Spread(
        minimum=float(np.min(values)),
        mean=float(np.mean(values)),
        deviation=float(np.std(values)),
        maximum=float(np.max(values)),
    )
