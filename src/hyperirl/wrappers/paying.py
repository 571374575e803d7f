"""What a learned reward pays for steps as an environment gives them."""

import dataclasses
import math
from typing import Any

import numpy as np
from gymnasium import spaces

from hyperirl.export import RewardFunction, reward_function
from hyperirl.export.hyperirl_numpy import Reward
from hyperirl.rewards import AbstractReward

ORIGINAL = "original_env_rew"  # Where the true reward stays, as in `imitation`.


@dataclasses.dataclass(frozen=True)
class Scaling:
    """`scale * reward + shift`, then limited to `[-clip, clip]`."""

    shift: float = 0.0
    scale: float = 1.0
    clip: float | None = None

    def __post_init__(self):
        if not (math.isfinite(self.shift) and 0 < self.scale < math.inf):
            raise ValueError(
                "A reward is shifted by a finite number and scaled by a positive one, "
                f"got shift={self.shift} and scale={self.scale}."
            )
        if self.clip is not None and not self.clip > 0:
            raise ValueError(
                f"`clip` is the largest reward paid, got {self.clip}; None for no "
                "limit."
            )

    def __call__(self, rewards: np.ndarray) -> np.ndarray:
        """The rewards to pay."""
        rewards = self.scale * rewards + self.shift
        return rewards if self.clip is None else rewards.clip(-self.clip, self.clip)


class Pay:
    """A reward for batches of steps of one environment.

    Rewards read vectors, and choices counted from 0. Of an environment with discrete
    observations they read one-hot vectors; arrays of several axes are flattened.
    """

    def __init__(
        self,
        reward: AbstractReward | RewardFunction,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        scaling: Scaling,
    ):
        """Refuses a reward that reads other steps than those of the environment."""
        self.function, self.scaling = reward_function(reward), scaling
        self.observation_space = _readable("observations", observation_space)
        self.action_space = _readable("actions", action_space)
        if isinstance(reward, AbstractReward | Reward):
            self._try(observation_space, action_space)

    def _try(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        """On one made-up step; it takes the last choice, if actions are choices."""
        seen = self.observations(_last(observation_space)[None])
        taken = self.actions(_last(action_space)[None])
        try:
            self(seen, taken, seen, np.zeros(1, bool))
        except ValueError as error:
            raise ValueError(
                f"The reward does not fit this environment, whose observations are "
                f"{observation_space} and whose actions are {action_space}: {error}"
            ) from error

    def observations(self, observations: Any) -> np.ndarray:
        """A batch of observations as vectors; a copy, for buffers are used again."""
        space, array = self.observation_space, np.array(observations)
        if isinstance(space, spaces.Discrete):
            return np.eye(space.n, dtype=np.float32)[array - space.start]
        return array.reshape(len(array), -1)

    def actions(self, actions: Any) -> np.ndarray:
        """A batch of actions as choices from 0 on, or as vectors; a copy."""
        space, array = self.action_space, np.array(actions)
        if isinstance(space, spaces.Discrete):
            return array - space.start
        return array.reshape(len(array), -1)

    def __call__(
        self, seen: np.ndarray, taken: np.ndarray, then: np.ndarray, done: np.ndarray
    ) -> np.ndarray:
        """One number for each step; `then` is what was seen next, also at an end."""
        rewards = np.asarray(self.function(seen, taken, then, done))
        if rewards.shape != (len(seen),):
            raise ValueError(
                f"The reward must give one number for each of {len(seen)} steps, got "
                f"shape {rewards.shape}."
            )
        return self.scaling(rewards)


def _readable(what: str, space: spaces.Space) -> spaces.Space:
    if not isinstance(space, spaces.Box | spaces.Discrete):
        raise ValueError(
            f"Rewards read {what} of a Box or a Discrete space, and those of this "
            f"environment are {space}; flatten them first, for example with "
            "`gymnasium.wrappers.FlattenObservation`."
        )
    return space


def _last(space: Any) -> np.ndarray:
    """The last choice, or zeros."""
    choices = isinstance(space, spaces.Discrete)
    return np.full(space.shape, space.start + space.n - 1 if choices else 0)
