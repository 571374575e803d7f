"""Rewards and policies in NumPy alone, without a file in between."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hyperirl import describing
from hyperirl.export import hyperirl_numpy
from hyperirl.policies import AbstractPolicy
from hyperirl.rewards import AbstractReward
from hyperirl.runs import named_arrays

RewardFunction = Callable[..., Any]
"""`f(state, action, next_state, done)`, as in `imitation`; the last two are optional.

All have the same axes before their own, and so has what it returns.
"""


def reward_function(reward: AbstractReward | RewardFunction) -> RewardFunction:
    """A reward as a function of NumPy arrays, quick from Python also for one step.

    A reward of a class of your own is computed by JAX. What is such a function already
    is left as it is.
    """
    if not callable(reward):
        raise ValueError(
            f"A reward is a function of steps, got {reward!r}; give a learned one, or "
            "`f(state, action, next_state, done)`."
        )
    if not isinstance(reward, AbstractReward):
        return reward
    try:
        return numpy_reward(reward)
    except ValueError:  # It cannot be described.
        return _computed_by_jax(reward)


def numpy_reward(reward: AbstractReward) -> hyperirl_numpy.Reward:
    """The same reward in NumPy alone; `ExportError` if its class is not one of ours."""
    return hyperirl_numpy.make_reward(*_parts(reward))


def numpy_policy(
    policy: AbstractPolicy, *, seed: int | None = None
) -> hyperirl_numpy.Policy:
    """The same policy in NumPy alone; `seed` decides its samples.

    `ExportError` if its class is not one of ours.
    """
    return hyperirl_numpy.make_policy(*_parts(policy), seed=seed)


def _parts(module: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return describing.describe(module), named_arrays(module)


def _computed_by_jax(reward: AbstractReward) -> RewardFunction:
    def function(state, action, next_state=None, done=None) -> np.ndarray:
        return np.asarray(reward(state, action))

    return function
