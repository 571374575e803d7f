"""What an estimate says about itself, against numbers by hand and by NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.curvature import Explicit
from hyperirl.hypergradient import MLIRL, Exact, Fisher, Raw
from hyperirl.hypergradient.estimate import signal_to_noise
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward


def test_signal_to_noise_by_hand():
    """`h1 . h2 = 3`, and `|h1 - h2|^2 / 4 = 2`."""
    pair = {"a": jnp.array([[3.0], [1.0]]), "b": jnp.array([[0.0], [2.0]])}
    np.testing.assert_allclose(signal_to_noise(pair), np.sqrt(3 / 2), rtol=1e-12)


def test_halves_that_contradict_each_other_have_no_signal():
    assert signal_to_noise(jnp.array([[3.0, 1.0], [-2.0, 0.5]])) == 0


def test_signal_to_noise_is_that_of_the_mean(getkey):
    """Of many halves with a known signal and a known noise."""
    signal, deviation = jnp.array([3.0, 4.0]), 2.0
    noise = deviation * jr.normal(getkey(), (4096, 2, 2))
    pairs = signal[None, None, :] + noise
    squared = jax.vmap(lambda pair: jnp.sum((pair[0] - pair[1]) ** 2) / 4)(pairs)
    # Two numbers, each the mean of two: their noise is `2 deviation^2 / 2`.
    np.testing.assert_allclose(jnp.mean(squared), deviation**2, rtol=0.05)
    found = jax.vmap(signal_to_noise)(pairs)
    np.testing.assert_allclose(jnp.median(found), 5.0 / deviation, rtol=0.2)


@pytest.mark.parametrize("kind", ["fisher", "exact"])
def test_the_cosine_is_that_with_the_ml_irl_gradient(mdp, problem, everything, kind):
    """With its sign: both descend the same loss."""
    policy, reward = softmax_table(jnp.zeros((2, 2))), TableReward(jnp.zeros((2, 2)))
    made = {"fisher": lambda: Fisher(Explicit(damping=1e-2), Raw())}
    estimator = (made | {"exact": lambda: Exact(mdp)})[kind]()
    expert, agent = everything[:5], everything
    found = eqx.filter_jit(estimator)(policy, reward, expert, agent, problem)
    theirs = eqx.filter_jit(MLIRL())(policy, reward, expert, agent, problem)
    a, b = (np.ravel(estimate.h.table) for estimate in (found, theirs))
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert expected > 0.3
    np.testing.assert_allclose(found.diagnostics.ml_irl_cosine, expected, rtol=1e-6)
