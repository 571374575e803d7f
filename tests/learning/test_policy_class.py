"""The policy class of the inner problem, by environment."""

import jax.random as jr
import pytest

from hyperirl import environments
from hyperirl.learning import LearnConfig, complete, setup
from hyperirl.policies import GaussianHead


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
    config, environment = complete(LearnConfig(env=env)), environments.make(env)
    head = setup.make_policy(config, environment, key=jr.key(0)).head
    assert isinstance(head, GaussianHead)
    assert (head.covariance, head.bounds is not None) == (covariance, squashed)
