"""Rewards to maximize alone: the level, and what of them is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.networks import partition
from hyperirl.policies import mlp_policy
from hyperirl.rewards import (
    LinearReward,
    QuadraticReward,
    StandaloneReward,
    TableReward,
    mlp_reward,
    standalone,
)
from hyperirl.spaces import Box, Discrete, uniform_entropy

TWO, BOX = Discrete(2), Box(2, -1.0, 2.0)


def network(key, space):
    return mlp_reward(3, space, key=key, hidden=(4,), dtype=jnp.float64)


@pytest.mark.parametrize("space", [TWO, BOX], ids=["choices", "box"])
def test_the_level_is_added_to_every_step(getkey, space):
    soft = network(getkey(), space)
    reward = standalone(soft, space, 0.3)
    observations = jr.normal(getkey(), (5, 3))
    actions = (
        jnp.array([0, 1, 1, 0, 1]) if space is TWO else jr.normal(getkey(), (5, 2))
    )
    expected = soft(observations, actions) + 0.3 * uniform_entropy(space)
    np.testing.assert_allclose(reward(observations, actions), expected, rtol=1e-12)
    assert reward.level == 0.3 * uniform_entropy(space)


@pytest.mark.parametrize("space", [Discrete(3), BOX], ids=["choices", "box"])
def test_what_the_policy_is_paid_stays_the_same(getkey, space):
    """`r_alone - alpha log(pi / u) == r_soft - alpha log pi`, with `u` uniform."""
    soft, alpha = network(getkey(), space), 0.7
    policy = mlp_policy(3, space, key=getkey(), hidden=(4,), dtype=jnp.float64)
    observations = jr.normal(getkey(), (6, 3))
    actions = policy.sample(observations, key=getkey())
    log_pi = policy.log_prob(observations, actions)
    log_u = -np.log(3) if isinstance(space, Discrete) else -np.log(3.0 * 3.0)
    alone = standalone(soft, space, alpha)(observations, actions)
    expected = soft(observations, actions) - alpha * log_pi
    np.testing.assert_allclose(alone - alpha * (log_pi - log_u), expected, rtol=1e-12)


def test_the_soft_part_comes_back():
    soft = TableReward(jnp.ones((2, 2)))
    assert soft.soft is soft
    assert standalone(soft, TWO, 0.5).soft is soft


def test_levels_do_not_add_up():
    soft = TableReward(jnp.ones((2, 2)))
    twice = standalone(standalone(soft, TWO, 0.5), TWO, 2.0)
    assert twice.soft is soft
    np.testing.assert_allclose(twice.level, 2 * np.log(2))
    assert StandaloneReward(twice, 1.0).soft is soft


@pytest.mark.parametrize("space", [Box(1), Box(1, 0.0), Discrete(1)], ids=str)
def test_a_reward_without_a_level_stays_what_it_is(space):
    soft = QuadraticReward(jnp.eye(2), jnp.eye(1))
    assert standalone(soft, space, 0.5) is soft
    assert standalone(StandaloneReward(soft, 1.0), space, 0.5) is soft


def test_the_level_is_not_trained():
    soft = TableReward(jnp.ones((2, 2)))
    reward = standalone(soft, TWO, 0.5)
    trained, rest = partition(reward)
    assert [leaf.shape for leaf in jax.tree.leaves(trained)] == [(2, 2)]
    assert eqx.tree_equal(eqx.combine(trained, rest), reward)


def test_the_level_takes_the_type_of_the_reward(getkey):
    """With 64-bit types on, one stray default would double the cost of everything."""
    soft = mlp_reward(3, TWO, key=getkey(), hidden=(4,))
    reward = standalone(soft, TWO, jnp.float32(0.5))
    assert reward.level.dtype == jnp.float32
    assert reward(np.zeros(3), 1).dtype == jnp.float32


def test_sizes_are_those_of_the_soft_part():
    reward = standalone(TableReward(jnp.ones((3, 2))), TWO, 0.5)
    assert (reward.observation_size, reward.action_space) == (3, TWO)
    linear = LinearReward(jnp.ones(2), lambda observation, action: observation)
    reward = standalone(linear, TWO, 0.5)
    assert (reward.observation_size, reward.action_space) == (None, None)
