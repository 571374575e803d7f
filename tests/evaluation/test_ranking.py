"""Rank correlation, its trajectories and its controls."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl.environments import LQR, CartPole, Pendulum
from hyperirl.evaluation import (
    constant_control,
    rank_correlation,
    ranking_set,
    spearman,
    untrained,
    untrained_control,
)
from hyperirl.evaluation.ranking import RandomPolicy, scaled_to
from hyperirl.policies import linear_gaussian, softmax_table
from hyperirl.rewards import (
    QuadraticReward,
    TableReward,
    fit_normalizer,
    mlp_reward,
    standalone,
)
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete
from hyperirl.trajectories import returns

# Pushes towards where the pole falls: enough to balance it.
BALANCE = np.outer([0, 0.5, 8.0, 4.0], [-1, 1])


def balancing(scale=2.0):
    return softmax_table(jnp.asarray(scale * BALANCE, jnp.float32))


@pytest.fixture(scope="module")
def falling():
    return ranking_set(CartPole(horizon=100), balancing(), key=jr.key(1))


@pytest.fixture(scope="module")
def fixed():
    environment = CartPole(terminates=False, horizon=100)
    return ranking_set(environment, balancing(), key=jr.key(1))


compiled_spearman = jax.jit(spearman)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**31), spread=st.sampled_from([2, 5, 1000]))
def test_spearman_agrees_with_scipy_ties_included(seed, spread):
    x, y = np.random.default_rng(seed).integers(0, spread, (2, 12)).astype(float)
    if len(set(x)) == 1 or len(set(y)) == 1:
        return  # Undefined; see the next test.
    expected = scipy.stats.spearmanr(x, y).statistic
    assert np.isclose(compiled_spearman(jnp.asarray(x), jnp.asarray(y)), expected)


def test_the_correlation_with_a_constant_is_undefined():
    x = jnp.arange(12.0)
    assert jnp.isnan(compiled_spearman(x, jnp.ones(12)))
    assert compiled_spearman(x, x**3) == 1
    assert compiled_spearman(x, -x) == -1


def test_the_set_spans_random_to_expert(falling):
    episodes = falling.trajectories
    lengths = np.asarray(returns(episodes, episodes.rewards)).reshape(11, 8)
    assert np.allclose(np.asarray(falling.noise).reshape(11, 8)[:, 0].max(), 1.0)
    assert np.all(lengths[0] == 100)  # The expert never falls.
    assert lengths[-1].mean() < 40  # Random actions: about 22 steps.
    assert scipy.stats.spearmanr(np.arange(11), lengths.mean(axis=1))[0] < -0.9


def test_at_full_noise_actions_are_uniform_and_at_none_the_experts(falling):
    episodes, noise = falling.trajectories, np.asarray(falling.noise)
    forward = np.asarray(episodes.observations)[:, :-1] @ BALANCE[:, 1] > 0
    agrees = forward == np.asarray(episodes.actions)
    mask = np.asarray(episodes.mask)
    share = lambda rows: agrees[rows][mask[rows]].mean()
    count = mask[noise == 1].sum()
    assert abs(share(noise == 1) - 0.5) < 5 * 0.5 / count**0.5
    assert share(noise == 0) > 0.6


def test_on_episodes_that_end_early_a_constant_reward_scores_one(falling):
    """So RankCorr is vacuous there, and the per-step variant says so."""
    found = constant_control(falling.trajectories)
    assert found.total == 1
    assert jnp.isnan(found.per_step)


def test_on_episodes_of_fixed_length_a_constant_reward_scores_nothing(fixed):
    found = constant_control(fixed.trajectories)
    assert jnp.isnan(found.total) and jnp.isnan(found.per_step)


def test_untrained_networks_score_high_where_episodes_end_early(falling, fixed):
    """About 0.75 of 1 without having learned anything, and 0.15 with a fixed length."""
    space, keys = Discrete(2), jr.split(jr.key(3), 2)
    scores = []
    for episodes in (falling.trajectories, fixed.trajectories):
        reward = mlp_reward(4, space, key=keys[0], hidden=(16,))
        scores.append(untrained_control(reward, episodes, key=keys[1]).total)
    assert scores[0] > 0.5
    assert scores[1] < scores[0] - 0.2


def test_the_true_reward_ranks_perfectly(fixed):
    environment = CartPole(terminates=False, horizon=100)
    found = rank_correlation(environment.reward, fixed.trajectories)
    np.testing.assert_allclose([found.total, found.per_step], 1)


def test_random_actions_without_bounds_have_three_times_the_experts_spread():
    gain = jnp.zeros((2, 4), jnp.float32)
    expert = linear_gaussian(gain, 0.5 * jnp.eye(2, dtype=jnp.float32))
    lqr = LQR(horizon=50)
    played = rollout(lqr, expert, 40, key=jr.key(0))
    random = scaled_to(played, RandomPolicy(lqr.action_space))
    assert random.needs_scale
    # 2000 actions: the deviation is known to 1 / sqrt(4000).
    assert np.allclose(random.scale, 1.5, rtol=5 / 4000**0.5)
    assert np.allclose(random.center, 0, atol=5 * 0.5 / 2000**0.5)
    draws = jax.vmap(lambda key: random.sample(jnp.zeros(4, jnp.float32), key=key))(
        jr.split(jr.key(1), 500)
    )
    np.testing.assert_allclose(draws.mean(0), random.center, atol=5 * 1.5 / 500**0.5)
    np.testing.assert_allclose(draws.std(0), random.scale, rtol=5 / 1000**0.5)


def test_random_actions_within_bounds_fill_them():
    random = RandomPolicy(Pendulum().action_space)
    assert not random.needs_scale
    draws = jax.vmap(lambda key: random.sample(jnp.zeros(3, jnp.float32), key=key))(
        jr.split(jr.key(0), 500)
    )
    assert -2 <= draws.min() < -1.9 and 1.9 < draws.max() <= 2


def test_untrained_rewards_keep_the_architecture_and_the_normalizer(falling):
    normalizer = fit_normalizer(falling.trajectories)
    reward = mlp_reward(
        4, Discrete(2), key=jr.key(0), hidden=(8,), clamp=2.0, normalizer=normalizer
    )
    fresh = untrained(reward, jr.key(1))
    assert jax.tree.structure(fresh) == jax.tree.structure(reward)
    assert jnp.array_equal(fresh.normalizer.scale, normalizer.scale)
    weights = fresh.network.layers[0].weight, reward.network.layers[0].weight
    assert weights[0].shape == weights[1].shape and not jnp.allclose(*weights)
    eye = jnp.eye(2, dtype=jnp.float32)
    other = untrained(QuadraticReward(eye, eye), jr.key(1))
    assert not jnp.allclose(other.state_root, eye)


def test_an_untrained_reward_keeps_its_level():
    """It is data: drawn anew it would say something about staying alive."""
    soft = TableReward(jnp.zeros((3, 2), jnp.float32))
    fresh = untrained(standalone(soft, Discrete(2), 0.5), jr.key(1))
    assert fresh.level == jnp.float32(0.5 * np.log(2))
    assert jnp.all(fresh.soft.table != 0)


def test_too_few_levels_are_refused():
    with pytest.raises(ValueError, match="at least 2 levels"):
        ranking_set(CartPole(), balancing(), key=jr.key(0), levels=1)
