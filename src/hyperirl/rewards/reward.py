"""What a reward is: a number for an observation and an action."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.rewards.recorded import recorded
from hyperirl.spaces import ActionSpace
from hyperirl.steps import Numbers, each_step
from hyperirl.trajectories import Trajectories, steps_taken


class AbstractReward(eqx.Module):
    """A differentiable function of an observation and an action.

    A class of your own writes `value`. If it overrides `observation_size` and
    `action_space` too, what does not fit them is refused when it is called.
    """

    @abc.abstractmethod
    def value(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The reward of one step: of taking `action` after seeing `observation`."""

    def __call__(self, observation: Numbers, action: Numbers) -> Float[Array, "*batch"]:
        """The reward of one step, or of many with the same axes before their own."""
        return each_step("reward", _value, self, observation, action)

    @property
    def observation_size(self) -> int | None:
        """How many numbers an observation has; None: not known."""
        return None

    @property
    def action_space(self) -> ActionSpace | None:
        """What an action is, though not its bounds; None: not known."""
        return None

    @property
    def soft(self) -> "AbstractReward":
        """What is maximized together with the entropy; see `StandaloneReward`."""
        return self


def _value(reward: AbstractReward, observation: Array, action: Array) -> Array:
    return reward.value(observation, action)


def rewards_of(
    reward: Callable, trajectories: Trajectories
) -> Float[Array, "episodes steps"]:
    """The reward of every step taken; 0 in the padding."""
    rewards = recorded(reward, trajectories)
    if rewards is None:
        rewards = jax.vmap(jax.vmap(reward))(*steps_taken(trajectories))
    return jnp.where(trajectories.mask, rewards, 0.0)
