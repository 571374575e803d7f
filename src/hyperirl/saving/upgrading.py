"""What files of the first version lack."""

import math
import warnings
from pathlib import Path
from typing import Any, TypeGuard

from hyperirl.rewards import AbstractReward, standalone
from hyperirl.spaces import Discrete


def with_level(
    reward: AbstractReward, metadata: Any, path: str | Path
) -> AbstractReward:
    """The reward to maximize alone; warns if the file does not say enough.

    Files of the first version hold what is maximized beside the entropy.
    """
    temperature = metadata.get("temperature") if isinstance(metadata, dict) else None
    space = reward.action_space
    if isinstance(space, Discrete) and _is_temperature(temperature):
        return standalone(reward, space, float(temperature))
    warnings.warn(
        f"{path} is of an older format, so its reward is one to maximize beside the "
        "entropy and has no level of its own; if it is to be maximized alone, add the "
        "level with `hyperirl.rewards.standalone(reward, space, temperature)`.",
        stacklevel=3,
    )
    return reward


def _is_temperature(value: Any) -> TypeGuard[float]:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and 0 < value < math.inf
