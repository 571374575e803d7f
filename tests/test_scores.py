"""The rows of the Fisher matrix: weighted gradients of log-probabilities."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from hyperirl.networks import partition
from hyperirl.policies import mlp_policy
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.scores import score_rows
from hyperirl.tasks import make

EPISODES, STEPS = 3, 30


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        ("cartpole", {}),
        ("lqr", {"covariance": "full"}),
        ("lqr", {"covariance": "full", "use_bias": False}),
        ("pendulum", {"covariance": "state", "squash": True}),
    ],
    ids=["categorical", "free parameters", "without biases", "squashed"],
)
def test_a_row_is_the_weighted_gradient_of_a_log_probability(env, settings):
    """Fails if a bias, the discount, the temperature or the mask is dropped.

    With an untrained policy many of CartPole's episodes end before they are cut.
    """
    environment, task = make(env).environment, problem(0.3, 0.9)
    policy = mlp_policy(
        environment.observation_size,
        environment.action_space,
        key=jr.key(0),
        hidden=(5, 4),
        **settings,
    )
    batch = rollout(environment, policy, EPISODES, key=jr.key(1), horizon=STEPS)
    params, rest = partition(policy)

    def score(observation, action):
        log_prob = lambda p: eqx.combine(p, rest).log_prob(observation, action)
        return ravel_pytree(jax.grad(log_prob)(params))[0]

    every = jax.vmap(jax.vmap(score))
    scores = jax.jit(every)(batch.observations[:, :-1], batch.actions)
    weights = np.sqrt(0.3 * 0.9 ** np.arange(STEPS) / EPISODES) * np.asarray(batch.mask)
    expected = weights[:, :, None] * np.asarray(scores)
    rows = score_rows(policy, batch, task)
    found = rows.block(0, EPISODES * STEPS)
    np.testing.assert_allclose(
        found, expected.reshape(found.shape), rtol=1e-3, atol=1e-5
    )
