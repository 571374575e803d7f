"""Rollouts: what ends, what is masked, and that chance is independent where it must."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import LQR, CartPole, Pendulum, Tabular
from hyperirl.policies import (
    AbstractPolicy,
    Categorical,
    linear_gaussian,
    softmax_table,
)
from hyperirl.rollout import rollout


class Coin(AbstractPolicy):
    """Pushes left or right at random; keeps count of how often it is compiled."""

    traces = 0

    def distribution(self, observation):
        Coin.traces += 1
        return Categorical(jnp.zeros(2, jnp.float32))


NUM_EPISODES, HORIZON = 64, 150


@pytest.fixture(scope="module")
def fallen():
    """Long enough for all poles to fall: the rest of the scan is padding."""
    return rollout(CartPole(), Coin(), NUM_EPISODES, key=jr.key(0), horizon=HORIZON)


def after_the_end(trajectories):
    """Where an episode is over, among observations."""
    return np.arange(HORIZON + 1)[None, :] > np.asarray(trajectories.lengths)[:, None]


def test_the_mask_is_on_until_the_end_and_off_from_there(fallen):
    expected = np.arange(HORIZON)[None, :] < np.asarray(fallen.lengths)[:, None]
    assert np.array_equal(fallen.mask, expected)


def test_an_episode_is_over_with_the_first_state_that_terminates(fallen):
    """Fails if the terminal observation is lost, or the mask is a step late."""
    fell = ~np.asarray(jax.vmap(jax.vmap(CartPole().upright))(fallen.observations))
    assert np.array_equal(np.argmax(fell, axis=1), fallen.lengths)


def test_each_observation_follows_from_the_one_before(fallen):
    advance = lambda s, a: CartPole().advance(s, a, key=jr.key(0))[0]
    expected = jax.jit(jax.vmap(jax.vmap(advance)))(
        fallen.observations[:, :-1], fallen.actions
    )
    error = np.abs(np.asarray(expected - fallen.observations[:, 1:]))
    assert error[np.asarray(fallen.mask)].max() < 1e-6


def test_after_the_end_the_state_stays(fallen):
    observations = np.asarray(fallen.observations)
    last = observations[np.arange(NUM_EPISODES), np.asarray(fallen.lengths)]
    still = observations == last[:, None, :]
    assert still.all(axis=2)[after_the_end(fallen)].all()


def test_after_the_end_nothing_is_earned(fallen):
    assert jnp.sum(fallen.rewards, axis=1).tolist() == fallen.lengths.tolist()


def test_all_episodes_that_ended_are_terminated(fallen):
    assert fallen.lengths.max() < HORIZON
    assert fallen.terminated.all()


def test_an_episode_cut_off_is_not_terminated():
    cut = rollout(CartPole(), Coin(), NUM_EPISODES, key=jr.key(0), horizon=15)
    ended = np.asarray(cut.terminated)
    assert 0 < ended.sum() < NUM_EPISODES
    assert (np.asarray(cut.lengths)[~ended] == 15).all()
    fell = ~np.asarray(jax.vmap(CartPole().upright)(cut.observations[:, -1]))
    assert np.array_equal(fell, ended)


def test_the_default_horizon_is_that_of_the_environment():
    shape = eqx.filter_eval_shape(
        rollout, Pendulum(horizon=7), Still(), 2, key=jr.key(0)
    )
    assert shape.mask.shape == (2, 7)


class Still(AbstractPolicy):
    """No torque."""

    def distribution(self, observation):
        raise NotImplementedError

    def sample(self, observation, *, key):
        return jnp.zeros(1, jnp.float32)


def test_numbers_are_32_bit(fallen):
    """With 64-bit types on, one stray default would double the memory."""
    types = {leaf.dtype.name for leaf in jax.tree.leaves(fallen)}
    assert types == {"float32", "int32", "bool"}


def test_the_same_key_gives_the_same_episodes(fallen):
    again = rollout(CartPole(), Coin(), NUM_EPISODES, key=jr.key(0), horizon=HORIZON)
    assert eqx.tree_equal(fallen, again)


def test_rollouts_can_be_mapped_over_keys():
    """As a sweep over seeds does."""
    play = lambda key: rollout(CartPole(), Coin(), 4, key=key, horizon=3)
    both = eqx.filter_eval_shape(jax.vmap(play), jr.split(jr.key(0), 2))
    assert both.mask.shape == (2, 4, 3)


def test_changing_the_dynamics_does_not_compile_again(fallen):
    traces = Coin.traces
    longer = dataclasses.replace(CartPole(), half_length=2.0)
    rollout(longer, Coin(), NUM_EPISODES, key=jr.key(0), horizon=HORIZON)
    assert Coin.traces == traces


@pytest.mark.parametrize("episodes, horizon", [(0, 5), (5, 0)])
def test_nothing_to_play_is_refused(episodes, horizon):
    with pytest.raises(ValueError, match="at least one episode of at least one step"):
        rollout(CartPole(), Coin(), episodes, key=jr.key(0), horizon=horizon)


TRANSITIONS = np.array(
    [[[0.5, 0.5, 0.0], [0.1, 0.2, 0.5]], [[0.0, 0.3, 0.7], [0.9, 0.1, 0.0]]]
    + [[[1 / 3, 1 / 3, 1 / 3], [0.2, 0.2, 0.6]]]
)
CHAIN = Tabular(
    transitions=TRANSITIONS, rewards=np.zeros((3, 2)), initial=np.array([0.6, 0.4, 0.0])
)
LOGITS = np.array([[0.0, 1.0], [-1.0, 0.5], [0.3, 0.3]])


def test_states_and_actions_are_distributed_as_the_tables_say():
    """The joint law of state, action and next state at the third step, exactly.

    Within five standard errors. Fails if actions and dynamics share a key (their draws
    would be correlated), or if masked steps are counted.
    """
    policy = softmax_table(jnp.asarray(LOGITS, jnp.float32))
    played = rollout(CHAIN, policy, 20_000, key=jr.key(0), horizon=3)
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    steps = p[:, :, None] * TRANSITIONS
    occupancy = np.asarray(CHAIN.initial) @ steps.sum(axis=1) @ steps.sum(axis=1)
    joint = occupancy[:, None, None] * steps

    alive = np.asarray(played.mask[:, 2]) & ~np.asarray(played.terminated)
    s, a, after = (
        np.argmax(played.observations[:, 2], axis=1),
        np.asarray(played.actions[:, 2]),
        np.argmax(played.observations[:, 3], axis=1),
    )
    counts = np.zeros((3, 2, 3))
    np.add.at(counts, (s[alive], a[alive], after[alive]), 1)
    error = np.abs(counts / 20_000 - joint)
    assert (error <= 5 * np.sqrt(joint * (1 - joint) / 20_000)).all()


def test_noise_is_independent_between_episodes_steps_and_actions():
    """Correlations of all noises of a few steps are within five standard errors of 0.

    Fails if a key is used twice: for two steps, for two episodes, or for action and
    dynamics.
    """
    environment = LQR()
    gain = jnp.zeros((2, 4), jnp.float32)
    policy = linear_gaussian(gain, jnp.eye(2, dtype=jnp.float32))
    played = rollout(environment, policy, 4096, key=jr.key(0), horizon=3)
    s, a = np.asarray(played.observations), np.asarray(played.actions)
    process = s[:, 1:] - s[:, :-1] @ environment.A.T - a @ environment.B.T
    noises = np.concatenate([process.reshape(4096, -1), a.reshape(4096, -1)], axis=1)
    neighbors = np.concatenate([noises, np.roll(noises, 1, axis=0)], axis=1)
    correlations = np.corrcoef(neighbors, rowvar=False)
    off_diagonal = correlations[~np.eye(len(correlations), dtype=bool)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(4096)


@pytest.mark.parametrize("episodes", [510, 512])
def test_every_episode_gets_the_action_for_its_own_observation(episodes):
    """512 are dealt into groups, 510 are not. Fails if they are collected otherwise."""
    gain = jnp.arange(8, dtype=jnp.float32).reshape(2, 4)
    policy = linear_gaussian(gain, 1e-6 * jnp.eye(2, dtype=jnp.float32))
    played = rollout(LQR(), policy, episodes, key=jr.key(0), horizon=2)
    expected = -np.asarray(played.observations[:, :-1]) @ np.asarray(gain).T
    np.testing.assert_allclose(played.actions, expected, rtol=1e-4, atol=1e-4)
