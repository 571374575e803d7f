"""Environments of Gymnasium and Stable-Baselines3 that pay a learned reward.

Each replaces the reward of every step by the learned one, and keeps the true one as
`original_env_rew` in the infos, the name that `imitation` uses.

`VecEnvRewardWrapper(venv, reward)` wraps a vector environment of Stable-Baselines3. It
is imported only when it is asked for, because it needs that library.
"""

from typing import TYPE_CHECKING, Any

from hyperirl.wrappers.single import RewardWrapper as RewardWrapper
from hyperirl.wrappers.vector import VectorRewardWrapper as VectorRewardWrapper

if TYPE_CHECKING:
    from hyperirl.wrappers.sb3 import VecEnvRewardWrapper as VecEnvRewardWrapper

__all__ = ["RewardWrapper", "VecEnvRewardWrapper", "VectorRewardWrapper"]


def __getattr__(name: str) -> Any:
    """Imports Stable-Baselines3 only for those who ask for its wrapper."""
    if name != "VecEnvRewardWrapper":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hyperirl.wrappers.sb3 import VecEnvRewardWrapper

    return VecEnvRewardWrapper
