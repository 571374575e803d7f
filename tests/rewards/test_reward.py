"""Rewards: the formulas, the clamp, the normalizer and the padding."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.networks import partition
from hyperirl.rewards import (
    LinearReward,
    QuadraticReward,
    RecordedReward,
    TableReward,
    fit_normalizer,
    mlp_reward,
    rewards_of,
)
from hyperirl.spaces import Box, Discrete
from hyperirl.trajectories import Trajectories

OBS = 3
TWO = Discrete(2)


def test_a_table_is_read_at_state_and_action(getkey):
    table = jr.normal(getkey(), (3, 2))
    reward = TableReward(table)(jnp.array([0.0, 0.0, 1.0]), jnp.int32(1))
    assert reward == table[2, 1]


def test_a_linear_reward_weighs_features():
    features = lambda observation, action: jnp.stack([observation[0], action[0] ** 2])
    reward = LinearReward(jnp.array([2.0, -3.0]), features)
    assert reward(jnp.array([5.0]), jnp.array([2.0])) == 2 * 5 - 3 * 4


Q = np.array([[2.0, 0.5], [0.5, 1.0]])
R = np.array([[0.3]])


def test_a_quadratic_reward_is_minus_the_cost():
    """Fails if a root is transposed: `Q` would be `root' root`."""
    s, a = np.array([1.0, -2.0]), np.array([3.0])
    reward = QuadraticReward.from_costs(jnp.asarray(Q), jnp.asarray(R))
    expected = -(s @ Q @ s + a @ R @ a)
    np.testing.assert_allclose(reward(jnp.asarray(s), jnp.asarray(a)), expected)


def test_a_quadratic_reward_gives_its_costs_back():
    reward = QuadraticReward.from_costs(jnp.asarray(Q), jnp.asarray(R))
    np.testing.assert_allclose(reward.state_cost, Q, rtol=1e-12)
    np.testing.assert_allclose(reward.action_cost, R, rtol=1e-12)


def test_a_cost_without_a_root_is_refused():
    """Cholesky answers with NaN, which would be learned from."""
    with pytest.raises(
        eqx.EquinoxRuntimeError, match="cost Q is not positive definite"
    ):
        QuadraticReward.from_costs(-jnp.eye(2), jnp.eye(1))


def network_reward(key, space=TWO, **options):
    return mlp_reward(OBS, space, key=key, hidden=(4,), dtype=jnp.float64, **options)


def test_a_network_sees_discrete_actions_one_hot(getkey):
    reward, x = network_reward(getkey()), jr.normal(getkey(), (OBS,))
    expected = reward.network(jnp.concatenate([x, jnp.array([0.0, 1.0])]))[0]
    assert reward(x, jnp.int32(1)) == expected


def test_a_network_sees_action_vectors_as_they_are(getkey):
    reward = network_reward(getkey(), Box(2))
    x, a = jr.normal(getkey(), (OBS,)), jr.normal(getkey(), (2,))
    assert reward(x, a) == reward.network(jnp.concatenate([x, a]))[0]


@pytest.mark.parametrize("scale", [1e3, -1e3])
def test_the_clamp_limits_the_output_on_both_sides(getkey, scale):
    reward = network_reward(getkey(), clamp=0.5)
    weight = jnp.full((1, 4), scale)
    reward = eqx.tree_at(lambda r: r.network.layers[-1].weight, reward, weight)
    value = reward(jnp.ones(OBS), jnp.int32(0))
    unclamped = reward.network(jnp.array([1.0, 1, 1, 1, 0]))[0]
    assert value == jnp.sign(unclamped) * 0.5


def test_a_clamp_that_leaves_nothing_is_refused(getkey):
    with pytest.raises(ValueError, match="`clamp` must be positive"):
        network_reward(getkey(), clamp=0.0)


def trajectories(observations, lengths):
    """Episodes with these observations; NaN after their ends."""
    episodes, times, _ = observations.shape
    seen = np.arange(times)[None, :] <= np.asarray(lengths)[:, None]
    observations = np.where(seen[:, :, None], observations, np.nan)
    mask = np.arange(times - 1)[None, :] < np.asarray(lengths)[:, None]
    return Trajectories(
        jnp.asarray(observations),
        jnp.where(jnp.asarray(mask), 1, -7).astype(jnp.int32),
        jnp.asarray(mask),
        jnp.zeros(episodes, bool),
    )


def test_the_normalizer_has_the_moments_of_the_steps_taken():
    """Neither padding nor the observation after the last action counts."""
    observations = np.random.default_rng(0).normal(2.0, 3.0, (2, 6, OBS))
    normalizer = fit_normalizer(trajectories(observations, [5, 2]))
    taken = np.concatenate([observations[0, :5], observations[1, :2]])
    np.testing.assert_allclose(normalizer.mean, taken.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(normalizer.scale, taken.std(axis=0), rtol=1e-12)


def test_the_normalizer_is_accurate_far_from_zero_in_single_precision():
    """Summed in `float32`, 200,000 numbers near 1000 lose the deviation of 0.1."""
    rng = np.random.default_rng(0)
    observations = rng.normal(1000.0, 0.1, (400, 501, 1)).astype(np.float32)
    normalizer = fit_normalizer(trajectories(observations, [500] * 400))
    taken = observations[:, :-1].astype(np.float64)
    assert normalizer.scale.dtype == jnp.float32
    np.testing.assert_allclose(normalizer.mean[0], taken.mean(), rtol=1e-7)
    np.testing.assert_allclose(normalizer.scale[0], taken.std(), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 12345.678])
def test_a_component_that_never_changes_keeps_its_size(value):
    """Divided by rounding noise instead, it would explode on other data."""
    observations = np.full((40, 101, 1), value, np.float32)
    normalizer = fit_normalizer(trajectories(observations, [100] * 40))
    assert normalizer.scale.tolist() == [1.0]


def test_a_component_in_small_units_is_normalized():
    observations = 1e-9 * np.random.default_rng(0).normal(size=(4, 51, 1))
    normalizer = fit_normalizer(trajectories(observations, [50] * 4))
    np.testing.assert_allclose(normalizer.scale, 1e-9, rtol=0.2)


def test_a_network_normalizes_observations_and_does_not_train_the_normalizer(getkey):
    observations = np.random.default_rng(0).normal(2.0, 3.0, (2, 6, OBS))
    normalizer = fit_normalizer(trajectories(observations, [5, 5]))
    reward = network_reward(getkey(), normalizer=normalizer)
    plain = eqx.tree_at(lambda r: r.normalizer, reward, None)
    x = jr.normal(getkey(), (OBS,))
    assert reward(x, jnp.int32(0)) == plain(normalizer(x), jnp.int32(0))
    assert jax.tree.leaves(partition(reward)[0].normalizer) == []


def test_rewards_of_never_read_the_padding(getkey):
    """NaN there would reach the gradient through `0 * NaN`."""
    reward = network_reward(getkey())
    batch = trajectories(np.random.default_rng(0).normal(size=(2, 6, OBS)), [5, 2])

    @eqx.filter_jit
    def both(reward):
        total = lambda reward: jnp.sum(rewards_of(reward, batch))
        return rewards_of(reward, batch), eqx.filter_grad(total)(reward)

    values, gradient = both(reward)
    assert values[1, 2:].tolist() == [0.0, 0.0, 0.0]
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((values, gradient)))


def test_rewards_of_are_those_of_each_step(getkey):
    reward = network_reward(getkey())
    batch = trajectories(np.random.default_rng(0).normal(size=(2, 6, OBS)), [5, 2])
    expected = reward(batch.observations[1, 1], jnp.int32(1))
    np.testing.assert_allclose(rewards_of(reward, batch)[1, 1], expected, rtol=1e-12)


def test_rewards_that_were_recorded_are_read_and_padded():
    batch = trajectories(np.zeros((2, 6, OBS)), [5, 2])
    paid = jnp.arange(10.0).reshape(2, 5)
    batch = eqx.tree_at(lambda b: b.rewards, batch, paid, is_leaf=lambda x: x is None)
    found = rewards_of(RecordedReward(), batch)
    np.testing.assert_array_equal(found, [[0, 1, 2, 3, 4], [5, 6, 0, 0, 0]])


def test_network_rewards_are_in_single_precision_by_default(getkey):
    reward = mlp_reward(OBS, Discrete(2), key=getkey(), hidden=(4,), clamp=10.0)
    value = jax.eval_shape(reward, jnp.zeros(OBS, jnp.float32), jnp.int32(0))
    assert value.dtype == jnp.float32
