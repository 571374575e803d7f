"""Episodes scored by a reward."""

import jax.numpy as jnp
import numpy as np

from hyperirl.rewards import TableReward
from hyperirl.rewards.scoring import score
from hyperirl.trajectories import Trajectories

REWARD = TableReward(jnp.array([[1.0, 10.0], [100.0, 1000.0]]))


def trajectories(rewards=None):
    """States 0, 1, 0 with actions 0, 1, 1, and state 1 with action 0; then NaN."""
    observations = np.full((2, 4, 2), np.nan)
    observations[0, :3] = np.eye(2)[[0, 1, 0]]
    observations[1, 0] = np.eye(2)[1]
    actions = jnp.array([[0, 1, 1], [0, 0, 0]], jnp.int32)
    mask = jnp.array([[True, True, True], [True, False, False]])
    ends = jnp.zeros(2, bool)
    return Trajectories(jnp.asarray(observations), actions, mask, ends, rewards)


def test_every_episode_has_its_return_its_mean_and_its_discounted_return():
    found = score(REWARD, trajectories(), discount=0.5)
    assert found.lengths.tolist() == [3, 1]
    np.testing.assert_allclose(found.returns, [1011.0, 100.0])
    np.testing.assert_allclose(found.per_step, [337.0, 100.0])
    np.testing.assert_allclose(found.discounted, [503.5, 100.0])
    assert found.true_returns is None


def test_true_rewards_are_summed_beside():
    true = jnp.array([[1.0, 2.0, 4.0], [8.0, jnp.nan, jnp.nan]])
    found = score(REWARD, trajectories(true), discount=0.5)
    assert found.true_returns is not None
    np.testing.assert_allclose(found.true_returns, [7.0, 8.0])
