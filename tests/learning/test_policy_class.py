"""The policy class of the inner problem, by environment."""

import jax
import jax.random as jr
import numpy as np
import pytest
from learning_setups import config_of

from hyperirl import demos, tasks
from hyperirl.learning import setup
from hyperirl.policies import GaussianHead


def policy_for(env, **settings):
    config, environment = config_of(env, **settings), tasks.make(env).environment
    train = demos.load(env.removesuffix("-clipped")).trajectories
    return setup.make_policy(config, environment, train, key=jr.key(0)), train


@pytest.mark.parametrize(
    ("env", "covariance", "squashed"),
    [
        ("lqr", "full", False),
        ("lqr-clipped", "full", False),
        ("pendulum", "state", True),
    ],
)
def test_vectors_have_the_noise_that_their_expert_has(env, covariance, squashed):
    """Fails if the torque of Pendulum is equally uncertain everywhere."""
    head = policy_for(env)[0].head
    assert isinstance(head, GaussianHead)
    assert (head.covariance, head.bounds is not None) == (covariance, squashed)


def test_networks_see_demonstrated_states_as_numbers_of_the_same_size():
    """Fails if an angle of a tenth looks ten times smaller than a position of one."""
    policy, train = policy_for("cartpole")
    assert policy.normalizer is not None
    seen = jax.vmap(policy.normalizer)(train.observations[:, :-1][train.mask])
    np.testing.assert_allclose(np.std(seen, axis=0), 1, rtol=1e-3)
    np.testing.assert_allclose(np.mean(seen, axis=0), 0, atol=1e-3)
    assert policy_for("cartpole", normalize=False)[0].normalizer is None


def test_inputs_stay_as_they_are_where_states_run_away_and_in_the_paper():
    assert policy_for("lqr")[0].normalizer is None
    assert config_of("cartpole", paper=True).normalize is False
