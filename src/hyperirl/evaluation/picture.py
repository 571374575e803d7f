"""What a report draws of a learned reward, as numbers: `picture.json`."""

from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from hyperirl.evaluation.explaining import along, sensitivity, visits
from hyperirl.evaluation.judging import Subject
from hyperirl.evaluation.maps import plain, reward_map
from hyperirl.evaluation.ranking import RankingSet, undiscounted_returns
from hyperirl.rewards import AbstractReward
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories

_EPISODES = 32  # Played by the policy; half as many where the host steps.


def picture(subject: Subject, ranking: RankingSet | None = None) -> dict[str, Any]:
    """All that a report draws about a reward: its map, and the parts below by name.

    `along` an expert's episode, `sensitivity`, `visits`, and a `scatter` of learned and
    true returns. A policy without a reward has only `visits`.

    Args:
        subject: What was learned, from what.
        ranking: Trajectories with true returns, where these are known.
    """
    task, reward = subject.task, subject.reward
    shown = subject.demos.trajectories
    found: dict[str, Any] = {}
    order = ()
    if reward is not None:
        matters = sensitivity(task, reward, shown)
        order = matters.get("order", ())
        episodes = shown if ranking is None else ranking.trajectories
        held_out = subject.parts.test.trajectories[0]
        found |= reward_map(task, reward, episodes, shown, order)
        found |= {
            "along": along(task.environment, reward, shown, held_out),
            "sensitivity": matters,
        }
        if ranking is not None:
            found["scatter"] = scatter(reward, ranking.trajectories, ranking.noise)
    return found | {"visits": visits(task, shown, _played(subject), order)}


def _played(subject: Subject) -> Trajectories:
    """Episodes of the run's policy, as long as the demonstrations."""
    environment = subject.environment
    count = _EPISODES // 2 if environment.is_stepped else _EPISODES
    return rollout(
        environment, subject.policy, count, key=jr.key(0), record_rewards=False
    )


def scatter(
    reward: AbstractReward, episodes: Trajectories, noise: Float[Array, " episodes"]
) -> dict[str, Any]:
    """Learned and true returns of trajectories from expert to random."""
    learned, true = undiscounted_returns(reward, episodes)
    return {
        "x_name": "true return",
        "y_name": "learned return",
        "x": plain(true),
        "y": plain(learned),
        "groups": [f"{share:.0%} random" for share in np.asarray(noise)],
    }
