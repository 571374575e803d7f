"""Polynomial rewards: every term, the limit of the inputs, what does not fit."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import saving
from hyperirl.networks import Normalizer, partition
from hyperirl.rewards import PolynomialReward, polynomial_reward
from hyperirl.rewards.polynomial import num_terms
from hyperirl.spaces import Box, Discrete

MEAN, SCALE = np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.5, 1.0])
NORMALIZER = Normalizer(jnp.asarray(MEAN), jnp.asarray(SCALE))
S, A = np.array([2.0, -2.5]), np.array([0.25])


def by_hand(weights, inputs):
    """The polynomial, one term after the other."""
    z = (inputs - MEAN) / SCALE
    pairs = [z[i] * z[j] for i in range(3) for j in range(i + 1)]
    return weights @ np.array([1.0, *z, *pairs])


def test_a_polynomial_of_observation_and_action(getkey):
    """Fails if a term is missing, doubled or in another place."""
    weights = jr.normal(getkey(), (1, num_terms(3, 1, True)))
    reward = PolynomialReward(weights, NORMALIZER, 1)
    expected = by_hand(np.asarray(weights[0]), np.concatenate([S, A]))
    np.testing.assert_allclose(reward(S, A), expected, rtol=1e-12)


def test_an_additive_one_is_a_sum_over_inputs(getkey):
    """Linear in what is seen, with a square for each number of an action."""
    weights = jr.normal(getkey(), (1, num_terms(3, 1, False)))
    reward = PolynomialReward(weights, NORMALIZER, 1, mixed=False)
    z = (np.concatenate([S, A]) - MEAN) / SCALE
    expected = np.asarray(weights[0]) @ np.array([1.0, *z, z[2] ** 2])
    np.testing.assert_allclose(reward(S, A), expected, rtol=1e-12)


def test_an_additive_one_of_choices_has_no_products(getkey):
    weights = jr.normal(getkey(), (2, num_terms(3, None, False)))
    reward = PolynomialReward(weights, NORMALIZER, None, mixed=False)
    seen = np.array([2.0, -2.5, 0.1])
    expected = np.asarray(weights[1]) @ np.array([1.0, *((seen - MEAN) / SCALE)])
    np.testing.assert_allclose(reward(seen, 1), expected, rtol=1e-12)


def test_each_choice_has_its_own_polynomial(getkey):
    weights = jr.normal(getkey(), (2, num_terms(3, 1, True)))
    reward = PolynomialReward(weights, NORMALIZER, None)
    seen = np.array([2.0, -2.5, 0.1])
    for choice in range(2):
        expected = by_hand(np.asarray(weights[choice]), seen)
        np.testing.assert_allclose(reward(seen, choice), expected, rtol=1e-12)


def test_far_inputs_count_as_two_deviations(getkey):
    """Without it, a robot that throws itself away earns more than one that runs."""
    reward = PolynomialReward(
        jr.normal(getkey(), (1, num_terms(3, 1, True))), NORMALIZER, 1
    )
    far, at_the_limit = np.array([1e6, -2.5]), np.array([1 + 2 * 2.0, -2.5])
    assert reward(far, A) == reward(at_the_limit, A)
    assert reward(at_the_limit, A) != reward(at_the_limit - 1, A)


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("space", [Box(1), Discrete(4)])
def test_it_starts_at_a_level_and_knows_its_sizes(space, mixed):
    reward = polynomial_reward(space, NORMALIZER, level=0.3, mixed=mixed)
    action = A if isinstance(space, Box) else 2
    assert reward(np.ones(reward.observation_size), action) == 0.3
    assert reward.observation_size == (2 if isinstance(space, Box) else 3)
    assert reward.action_space == space


def test_the_normalizer_is_not_learned():
    trained = partition(polynomial_reward(Box(1), NORMALIZER))[0]
    assert trained.normalizer is None or trained.normalizer.mean is None


@pytest.mark.parametrize(
    ("shape", "action_size", "words"),
    [((1, 9), 1, "has 10 terms"), ((2, 10), 1, "2 choices"), ((1, 10), 3, "of 3")],
)
def test_weights_that_do_not_fit_are_refused(shape, action_size, words):
    with pytest.raises(ValueError, match=words):
        PolynomialReward(jnp.zeros(shape), NORMALIZER, action_size)


@pytest.mark.parametrize("action_size, choices", [(1, 1), (None, 2)])
def test_it_is_saved_and_loaded(tmp_path, action_size, choices):
    size = 2 + (action_size or 0)
    normalizer = Normalizer(jnp.zeros(size), jnp.ones(size))
    weights = jnp.ones((choices, num_terms(size, action_size, True)))
    reward = PolynomialReward(weights, normalizer, action_size)
    path = saving.save_reward(reward, tmp_path / "reward.npz")
    assert eqx.tree_equal(saving.load_reward(path), reward)
