"""What a reward says about whole episodes."""

import dataclasses

import numpy as np

from hyperirl.rewards.reward import AbstractReward, rewards_of
from hyperirl.trajectories import Trajectories, returns


@dataclasses.dataclass(frozen=True)
class Scores:
    """Numbers for each episode."""

    lengths: np.ndarray
    returns: np.ndarray
    """The sum of the rewards."""
    per_step: np.ndarray
    """Their mean."""
    discounted: np.ndarray
    """`sum_t discount ** t * reward_t`."""
    true_returns: np.ndarray | None
    """The sum of the true rewards, if they are known."""


def score(
    reward: AbstractReward, trajectories: Trajectories, *, discount: float
) -> Scores:
    """Scores every episode by a reward."""
    rewards = rewards_of(reward, trajectories)
    lengths = np.asarray(trajectories.lengths)
    total = np.asarray(returns(trajectories, rewards))
    true = trajectories.rewards
    return Scores(
        lengths=lengths,
        returns=total,
        per_step=total / lengths,
        discounted=np.asarray(returns(trajectories, rewards, discount)),
        true_returns=None if true is None else np.asarray(returns(trajectories, true)),
    )
