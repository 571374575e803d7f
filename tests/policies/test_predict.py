"""Policies as Stable-Baselines3's tools call them."""

import gymnasium
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.policies import AbstractPolicy, Categorical, mlp_policy, softmax_table
from hyperirl.spaces import Box, Discrete

LOGITS = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
TABLE = softmax_table(jnp.asarray(LOGITS, jnp.float32))


def test_the_likeliest_choice_is_predicted_for_one_and_for_many():
    action, state = TABLE.predict(np.eye(2)[0], deterministic=True)
    assert isinstance(action, np.ndarray) and action.dtype == np.int64
    assert action.shape == () and action == 1 and state is None
    actions, state = TABLE.predict(np.eye(2)[[0, 1, 1]], "kept", deterministic=True)
    assert actions.tolist() == [1, 0, 0] and state == "kept"


def test_vectors_are_predicted_in_the_middle():
    policy = mlp_policy(3, Box(2, -1.0, 1.0), key=jr.key(0), squash=True)
    observations = np.ones((4, 3), np.float32)
    actions, _ = policy.predict(observations, deterministic=True)
    middle = policy.distribution(observations[0]).mode()
    assert isinstance(actions, np.ndarray) and actions.dtype == np.float32
    np.testing.assert_allclose(actions, np.tile(middle, (4, 1)), rtol=1e-5)


def test_draws_follow_the_policy():
    """Within 5 standard errors."""
    num = 4000
    draws, _ = TABLE.predict(np.eye(2)[np.zeros(num, int)], key=jr.key(0))
    expected = np.exp(LOGITS[0]) / np.exp(LOGITS[0]).sum()
    shares = np.bincount(draws, minlength=3) / num
    assert np.all(np.abs(shares - expected) < 5 * np.sqrt(expected / num))


def test_draws_are_decided_by_numpys_seed_or_by_a_key():
    many = np.eye(2)[np.zeros(100, int)]

    def seeded(seed):
        np.random.seed(seed)
        return TABLE.predict(many)[0].tolist()

    assert seeded(0) == seeded(0) != seeded(1)
    keyed = lambda: TABLE.predict(many, key=jr.key(3))[0].tolist()
    assert keyed() == keyed()


class Own(AbstractPolicy):
    def distribution(self, observation):
        return Categorical(observation)


def test_a_policy_of_ones_own_can_predict():
    assert Own().predict([0.0, 1.0, 0.0], deterministic=True)[0] == 1


def test_gymnasium_takes_what_is_predicted():
    env = gymnasium.make("CartPole-v1")
    policy = mlp_policy(4, Discrete(2), key=jr.key(0))
    observation, _ = env.reset(seed=0)
    action, _ = policy.predict(observation)
    assert env.action_space.contains(action)
    env.step(action)


def test_observations_of_another_size_are_refused():
    with pytest.raises(ValueError, match="reads observations of 2 numbers"):
        TABLE.predict(np.ones(3))
