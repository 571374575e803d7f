"""What SAC's action values are taught."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from inner_problems import MDP, PROBLEM, UNIFORM

from hyperirl.inner import SAC
from hyperirl.inner.action_values import action_value
from hyperirl.inner.sac import Replay, td_targets, values_of
from hyperirl.rewards import TableReward


def test_after_a_termination_nothing_is_worth_anything():
    """Action values are 0 at first, so a state is worth the entropy of the policy."""
    states, actions = jnp.array([0, 1, 2, 3]), jnp.array([0, 1, 2, 0], jnp.int32)
    observations = jnp.eye(4, dtype=jnp.float32)[states]
    ends = jnp.array([True, False, True, False])
    part = Replay(observations, actions, observations[::-1], ends)
    make = lambda key: action_value(
        observations, actions, MDP.action_space, (8,), key=key
    )
    twins = eqx.filter_vmap(make)(jr.split(jr.key(0)))
    reward = TableReward(MDP.rewards)
    found = td_targets(UNIFORM, twins, part, reward, PROBLEM, key=jr.key(1))
    value = float(PROBLEM.temperature) * np.log(MDP.rewards.shape[1])
    expected = np.asarray(MDP.rewards)[states, actions]
    expected = expected + float(PROBLEM.discount) * np.where(ends, 0.0, value)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_state_is_worth_what_the_more_careful_value_says():
    observations = jnp.eye(4, dtype=jnp.float32)
    actions = jnp.zeros(4, jnp.int32)
    make = lambda key: action_value(
        observations, actions, MDP.action_space, (8,), key=key
    )
    twins = eqx.filter_vmap(make)(jr.split(jr.key(0)))
    last = lambda twins: twins.network.layers[-1].bias
    rows = jnp.array([2.0, -1.0], jnp.float32)[:, None]
    twins = eqx.tree_at(last, twins, jnp.broadcast_to(rows, last(twins).shape))
    found = values_of(UNIFORM, twins, observations, PROBLEM, jr.key(1))
    entropy = float(PROBLEM.temperature) * np.log(MDP.rewards.shape[1])
    value = -1.0 * (1.0 + 2.0)  # g(u) = u (|u| + 2).
    np.testing.assert_allclose(found, np.full(4, value + entropy), rtol=1e-5)


def test_targets_go_a_share_of_the_way_to_what_was_learned():
    solver = SAC(
        num_envs=2,
        num_gradients=1,
        batch_size=4,
        capacity=16,
        num_initial_steps=4,
        hidden=(4,),
        target_rate=0.25,
    )
    reward, key = TableReward(MDP.rewards), jr.key(0)
    before = solver.init(MDP, UNIFORM, key=key)
    after = solver.update(reward, before, PROBLEM, jnp.float32(1.0), key=key)
    weight = lambda values: np.asarray(values.network.layers[-1].weight)
    old, learned = weight(before.targets), weight(after.twins)
    assert np.abs(learned - old).max() > 1e-5
    expected = old + 0.25 * (learned - old)
    np.testing.assert_allclose(weight(after.targets), expected, rtol=1e-5, atol=1e-9)
