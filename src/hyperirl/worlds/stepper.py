"""What steps a world that is not compiled: many environments at once, in NumPy.

A stepper is a simulator and nothing more. It knows no time limit and no policy, and it
restarts an environment only when it is told to: `acting` plays the episodes. Chance is
an argument, so that a stepper that can be saved has no other state than its physics.

What only some can do is a capability, which is asked for: to be restarted at any time
(`can_restart`), to start where somebody has been (`can_start_anywhere`), and to be
saved and gone on with (`can_save`).
"""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hyperirl.spaces import ActionSpace

Ids = Int[np.ndarray, " ids"]
"""The numbers of some of the environments, in rising order."""


class Stepped(NamedTuple):
    """What one step of all environments led to, before anything is restarted."""

    observations: Float[np.ndarray, "envs obs"]
    """What was reached: of an episode that ended, its last observation."""
    rewards: Float[np.ndarray, " envs"]
    """What the environment paid."""
    terminated: Bool[np.ndarray, " envs"]
    """Whether the task is over there: nothing comes after it."""
    truncated: Bool[np.ndarray, " envs"]
    """Whether the environment cut the episode off, though the task goes on."""
    taken: Bool[np.ndarray, " envs"] | None = None
    """Whether it was a step at all, and not a restart in disguise; None: all were."""


class AbstractStepper(abc.ABC):
    """Many copies of one environment, stepped together."""

    num_envs: int
    observation_size: int
    action_space: ActionSpace
    can_restart: bool = True
    """Whether an episode can be given up before it ends."""
    can_start_anywhere: bool = False
    """Whether `start_at` is there."""
    can_save: bool = False
    """Whether `save_state` holds all there is."""

    @abc.abstractmethod
    def restart(self, ids: Ids, *, rng: np.random.Generator) -> None:
        """Begins new episodes in some environments.

        One whose episode has just ended may begin the next by itself; it is told all
        the same.
        """

    @abc.abstractmethod
    def observe(self) -> Float[np.ndarray, "envs obs"]:
        """What is seen now."""

    @abc.abstractmethod
    def step(
        self, actions: np.ndarray, *, idle: Bool[np.ndarray, " envs"] | None = None
    ) -> Stepped:
        """Takes one action in every environment.

        Args:
            actions: One for each. A vector beyond its bounds has the effect of the
                bound.
            idle: Which results nobody will look at; those may be left as they are.
        """

    def start_at(self, ids: Ids, observations: Float[np.ndarray, "ids obs"]) -> None:
        """Begins new episodes in states that look like these observations."""
        raise NotImplementedError(_absent(self, "start where others have been"))

    def save_state(self) -> dict[str, np.ndarray]:
        """The physics, as arrays; empty where that cannot be done."""
        return {}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Goes on from what was saved."""
        raise NotImplementedError(_absent(self, "go back to what was saved"))

    def close(self) -> None:
        """Gives back what it holds of the machine; nothing, for most."""
        return None


def _absent(stepper: AbstractStepper, what: str) -> str:
    return f"{type(stepper).__name__} cannot {what}; ask for it before you use it."
