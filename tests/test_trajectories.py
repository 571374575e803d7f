"""The padded batch of episodes: what is checked, counted, picked and joined."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl.trajectories import (
    Trajectories,
    concatenate,
    discount_weights,
    pad,
    returns,
    split,
    steps_taken,
)


def batch(lengths=(3, 1, 2), num_steps=4, discrete=True, rewards=True, obs=2):
    """Episodes whose numbers say where they are; NaN in the padding."""
    episodes = len(lengths)
    mask = np.arange(num_steps)[None, :] < np.array(lengths)[:, None]
    place = 10.0 * np.arange(episodes)[:, None] + np.arange(num_steps + 1)[None, :]
    seen = np.pad(mask, [(0, 0), (1, 0)], constant_values=True)
    observations = np.where(seen, place, np.nan).astype(np.float32)
    actions = np.where(mask, place[:, :-1], -1).astype(np.int32)
    if not discrete:
        actions = np.where(mask, place[:, :-1], np.nan).astype(np.float32)[:, :, None]
    true = np.where(mask, place[:, :-1], np.nan).astype(np.float32)
    return Trajectories(
        jnp.asarray(np.repeat(observations[:, :, None], obs, axis=2)),
        jnp.asarray(actions),
        jnp.asarray(mask),
        jnp.arange(episodes) % 2 == 0,
        jnp.asarray(true) if rewards else None,
    )


def first_numbers(trajectories):
    """Which episodes of `batch` these are."""
    return (trajectories.observations[:, 0, 0] / 10).astype(int).tolist()


def test_one_observation_more_than_actions_is_demanded():
    good = batch()
    with pytest.raises(ValueError, match="one more observation than actions"):
        Trajectories(
            good.observations[:, :-1], good.actions, good.mask, good.terminated
        )


def test_floating_point_actions_without_an_axis_are_refused():
    """They are neither choices nor vectors; code would take them for either."""
    good = batch()
    actions = good.actions.astype(jnp.float32)
    with pytest.raises((ValueError, TypeError), match="shape|actions"):
        Trajectories(good.observations, actions, good.mask, good.terminated)


def test_lengths_count_the_actions():
    assert batch().lengths.tolist() == [3, 1, 2]


@pytest.mark.parametrize("discrete", [True, False])
def test_discrete_tells_choices_from_vectors(discrete):
    assert batch(discrete=discrete).discrete is discrete


@pytest.mark.parametrize(
    "index, episodes",
    [
        (0, [0]),
        (-1, [2]),
        (np.int64(1), [1]),
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        (np.array([2, 0]), [2, 0]),
        ([1, -1], [1, 2]),
        (np.array([True, False, True]), [0, 2]),
        (jnp.array([2, 1]), [2, 1]),
        (jnp.array(1), [1]),
        (jnp.array([False, True, False]), [1]),
    ],
    ids=str,
)
def test_picking_episodes(index, episodes):
    """A number keeps the axis of episodes: what comes out is a batch of one."""
    picked = batch()[index]
    assert first_numbers(picked) == episodes
    assert picked.mask.shape == (len(episodes), 4)
    assert picked.terminated.tolist() == [i % 2 == 0 for i in episodes]


@pytest.mark.parametrize("index", [3, -4, [0, 7], jnp.array([5])], ids=str)
def test_picking_an_episode_that_is_not_there(index):
    """JAX would hand out the last one instead."""
    with pytest.raises(IndexError):
        batch()[index]


def test_episodes_can_be_picked_inside_jit():
    picked = jax.jit(lambda batch, index: batch[index])(batch(), jnp.array([2, 0]))
    assert first_numbers(picked) == [2, 0]


def test_discount_weights_are_powers_while_alive():
    weights = discount_weights(batch(), 0.5)
    expected = [[1, 0.5, 0.25, 0], [1, 0, 0, 0], [1, 0.5, 0, 0]]
    assert weights.tolist() == expected
    assert weights.dtype == jnp.float32


def test_returns_weigh_rewards_and_never_read_the_padding():
    trajectories = batch()
    value = returns(trajectories, trajectories.rewards, 0.5)
    assert value.tolist() == [0 + 0.5 + 0.5, 10, 20 + 10.5]


def test_the_derivative_of_returns_never_reads_the_padding():
    """A product with a zero weight alone would give NaN here."""
    trajectories = batch()
    total = lambda discount: jnp.sum(
        returns(trajectories, trajectories.rewards, discount)
    )
    # d/dg of g * 1 + g^2 * 2 + 10 + 20 + 21 g at g = 0.5.
    assert jax.grad(total)(jnp.float32(0.5)) == 1 + 2 + 21


@pytest.mark.parametrize("discrete", [True, False])
def test_steps_taken_keep_the_steps_and_fill_the_padding_with_the_first(discrete):
    trajectories = batch(discrete=discrete)
    observations, actions = steps_taken(trajectories)
    assert observations[:, :, 0].tolist() == [
        [0, 1, 2, 0],
        [10, 10, 10, 10],
        [20, 21, 20, 20],
    ]
    assert actions.reshape(3, 4).tolist() == observations[:, :, 0].tolist()


def test_pad_adds_masked_steps():
    padded = pad(batch(), 6)
    assert padded.observations.shape == (3, 7, 2)
    assert padded.actions.shape == padded.mask.shape == padded.rewards.shape == (3, 6)
    assert padded.lengths.tolist() == [3, 1, 2]


def test_pad_refuses_to_cut():
    with pytest.raises(ValueError, match="Cannot pad 4 steps to 3"):
        pad(batch(), 3)


def test_concatenate_pads_to_the_longest():
    both = concatenate([batch(), batch(lengths=(5, 2), num_steps=5)])
    assert both.lengths.tolist() == [3, 1, 2, 5, 2]
    assert both.observations.shape == (5, 6, 2)


def test_concatenate_drops_true_rewards_that_are_not_known_for_all():
    assert concatenate([batch(), batch(rewards=False)]).rewards is None


def test_concatenate_joins_different_widths_of_the_same_type():
    """Demonstrations from files often hold 64-bit actions."""
    wide = eqx.tree_at(lambda b: b.actions, batch(), batch().actions.astype(jnp.int64))
    assert concatenate([batch(), wide]).actions.dtype == jnp.int32


@pytest.mark.parametrize(
    "other, message",
    [
        (batch(discrete=False), "discrete actions, batch 1 .* vectors of size 1"),
        (batch(obs=3), "observations of size 2 .* observations of size 3"),
    ],
    ids=["actions", "observations"],
)
def test_concatenate_refuses_episodes_of_another_environment(other, message):
    with pytest.raises(ValueError, match=message):
        concatenate([batch(), other])


def test_concatenate_refuses_nothing():
    with pytest.raises(ValueError, match="no batch"):
        concatenate([])


def many(count):
    return batch(lengths=(1,) * count, num_steps=1)


@pytest.mark.parametrize(
    "fractions, sizes",
    [
        ((0.8, 0.1, 0.1), [8, 1, 1]),
        ((0.5, 0.5), [5, 5]),
        ((0.98, 0.01, 0.01), [8, 1, 1]),
        ((0.01, 0.01, 0.98), [1, 1, 8]),
        ((0.5, 0.01, 0.49), [5, 1, 4]),
    ],
    ids=str,
)
def test_split_deals_by_fractions_and_leaves_no_part_empty(fractions, sizes):
    parts = split(many(10), fractions, seed=0)
    assert [part.num_episodes for part in parts] == sizes


def test_split_deals_every_episode_once():
    parts = split(many(10), (0.6, 0.2, 0.2), seed=3)
    dealt = [number for part in parts for number in first_numbers(part)]
    assert sorted(dealt) == list(range(10))


def test_split_depends_on_the_seed_alone():
    deal = lambda seed: first_numbers(split(many(10), (0.5, 0.5), seed=seed)[0])
    assert deal(1) == deal(1)
    assert deal(1) != deal(2)


@pytest.mark.parametrize("fractions", [(0.5, 0.6), (1.5, -0.5), (1.0, 0.0)], ids=str)
def test_split_refuses_fractions_that_are_none(fractions):
    with pytest.raises(ValueError, match="positive and sum to 1"):
        split(many(10), fractions, seed=0)


def test_split_refuses_more_parts_than_episodes():
    with pytest.raises(ValueError, match="2 episodes into 3 parts"):
        split(many(2), (0.8, 0.1, 0.1), seed=0)
