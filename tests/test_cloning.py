"""Behavioral cloning against what the most likely policy is known to be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.cloning import clone, mean_nll
from hyperirl.environments import LQR, Tabular
from hyperirl.policies import linear_gaussian, softmax_table
from hyperirl.rollout import rollout


@pytest.fixture(scope="module")
def mdp():
    """Every action leads anywhere, or ends the task with a chance of 5 %."""
    transitions = np.random.default_rng(0).dirichlet(np.ones(4), (4, 3))
    return Tabular(
        transitions=0.95 * transitions,
        rewards=np.zeros((4, 3)),
        initial=np.full(4, 0.25),
        horizon=30,
    )


def expert_episodes(mdp, num_episodes, key):
    logits = np.random.default_rng(1).normal(size=(4, 3))
    expert = softmax_table(jnp.asarray(logits, jnp.float32))
    return rollout(mdp, expert, num_episodes, key=key)


def frequencies(trajectories):
    """How often each action was taken in each state."""
    mask = np.asarray(trajectories.mask)
    states = np.asarray(trajectories.observations)[:, :-1][mask].argmax(axis=1)
    counts = np.zeros((4, 3))
    np.add.at(counts, (states, np.asarray(trajectories.actions)[mask]), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def test_a_tabular_clone_acts_with_the_experts_frequencies(mdp, getkey):
    """They maximize the likelihood, so selecting by it on the same episodes is exact.

    The tolerance is what minibatches leave at a rate that has fallen to zero.
    """
    episodes = expert_episodes(mdp, 40, getkey())
    start = softmax_table(jnp.zeros((4, 3), jnp.float32))
    policy, _ = clone(
        start, episodes, episodes, key=getkey(), num_steps=400, learning_rate=0.05
    )
    learned = jax.vmap(policy.outputs)(jnp.eye(4, dtype=jnp.float32))
    expected = frequencies(episodes)
    assert np.allclose(jax.nn.softmax(learned), expected, atol=0.02)
    best = softmax_table(jnp.asarray(np.log(expected), jnp.float32))
    gap = mean_nll(policy, episodes) - mean_nll(best, episodes)
    assert 0 <= gap < 0.02


def test_the_policy_returned_is_the_best_on_held_out_episodes(mdp, getkey):
    """One training episode is soon overfitted: the last policy is not the best one."""
    train = expert_episodes(mdp, 1, getkey())
    valid = expert_episodes(mdp, 40, getkey())
    start = softmax_table(jnp.zeros((4, 3), jnp.float32))
    policy, history = clone(
        start, train, valid, key=getkey(), num_steps=400, learning_rate=0.1
    )
    first = float(mean_nll(start, valid))
    best = min(first, float(jnp.min(history.valid_nll)))
    assert np.isclose(float(mean_nll(policy, valid)), best, rtol=1e-5)
    assert best < float(history.valid_nll[-1])
    assert history.steps[-1] == 400 and history.train_nll[-1] < history.train_nll[0]


def test_padding_is_never_read(mdp, getkey):
    episodes = expert_episodes(mdp, 40, getkey())
    assert not episodes.mask.all()
    seen = jnp.pad(episodes.mask, [(0, 0), (1, 0)], constant_values=True)
    observations = jnp.where(seen[:, :, None], episodes.observations, jnp.nan)
    spoiled = eqx.tree_at(lambda t: t.observations, episodes, observations)
    start = softmax_table(jnp.zeros((4, 3), jnp.float32))
    key = getkey()
    clean, _ = clone(start, episodes, episodes, key=key, num_steps=400)
    other, _ = clone(start, spoiled, spoiled, key=key, num_steps=400)
    assert eqx.tree_equal(clean, other)


def test_a_gaussian_clone_comes_close_to_the_expert(getkey):
    lqr = LQR(horizon=20)
    gain = jnp.array([[0.8, 1.2, 0, 0], [0, 0, 0.8, 1.2]], jnp.float32)
    root = jnp.array([[0.3, 0], [0.1, 0.2]], jnp.float32)
    expert = linear_gaussian(gain, root)
    train, valid = (rollout(lqr, expert, 100, key=getkey()) for _ in range(2))
    start = linear_gaussian(0 * gain, jnp.eye(2, dtype=jnp.float32))
    policy, _ = clone(
        start, train, valid, key=getkey(), num_steps=1000, learning_rate=0.05
    )
    # 11 parameters from 100 episodes: 11 / 200 nats an episode are lost on average.
    gap = float(mean_nll(policy, valid) - mean_nll(expert, valid))
    assert abs(gap) < 5 * 11 / 200
    assert float(mean_nll(start, valid) - mean_nll(expert, valid)) > 10


def test_the_same_key_gives_the_same_clone_and_nonsense_is_refused(mdp, getkey):
    episodes, key = expert_episodes(mdp, 40, getkey()), jr.key(7)
    start = softmax_table(jnp.zeros((4, 3), jnp.float32))
    first, _ = clone(start, episodes, episodes, key=key, num_steps=400)
    second, _ = clone(start, episodes, episodes, key=key, num_steps=400)
    assert eqx.tree_equal(first, second)
    with pytest.raises(ValueError, match="learning_rate"):
        clone(start, episodes, episodes, key=key, learning_rate=-1.0)
    with pytest.raises(ValueError, match="at least one step"):
        clone(start, episodes, episodes, key=key, num_steps=0)


def test_the_rate_falls_to_nothing(mdp, getkey):
    """Along the cosine, the second half of the steps goes a fifth of the way at most.

    With a gradient that never changes, Adam goes as far as its rate.
    """
    steps = expert_episodes(mdp, 4, getkey())
    always = eqx.tree_at(lambda t: t.actions, steps, jnp.zeros_like(steps.actions))
    start = softmax_table(jnp.zeros((4, 3), jnp.float32))
    moved = []
    for rate in (1e-4, 2e-4):
        policy, _ = clone(
            start, always, always, key=jr.key(0), num_steps=40, learning_rate=rate
        )
        moved.append(float(jnp.max(jnp.abs(policy.network.layers[0].weight))))
    # The mean of the cosine is one half.
    np.testing.assert_allclose(moved, [0.5 * 40 * 1e-4, 0.5 * 40 * 2e-4], rtol=0.1)
