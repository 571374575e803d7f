"""The estimators against the hypergradient through the Riccati equation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.environments import LQR
from hyperirl.hypergradient import Adjoint, Centred, Fisher, Raw
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.problem import problem
from hyperirl.rewards import QuadraticReward
from hyperirl.rollout import rollout

DRAWS = 4


@pytest.fixture(scope="module")
def cosines():
    """By estimator and number of trajectories, to the exact hypergradient."""
    lqr, alpha_gamma = LQR(), problem()
    single = lambda tree: jax.tree.map(
        lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, tree
    )
    solve = lambda reward: single(
        exact.lqr.soft_optimal_policy(lqr, reward, alpha_gamma)
    )
    expert = rollout(lqr, solve(exact.lqr.true_reward(lqr)), 32, key=jr.key(0))
    root = lambda size: 0.7 * jnp.eye(size, dtype=jnp.float32)
    reward = QuadraticReward(root(4), root(2))
    policy = solve(reward)
    moments = exact.lqr.demo_moments(expert, alpha_gamma.discount)
    truth = exact.lqr.hypergradient(lqr, reward, alpha_gamma, moments)
    features = random_features(
        input_normalizer(expert), lqr.action_space, key=jr.key(1), num_units=0
    )
    flatten = lambda h: jnp.concatenate([x.ravel() for x in jax.tree.leaves(h)])

    @eqx.filter_jit
    def cosine(cross, agent):
        estimator = Fisher(Explicit(damping=1e-3), cross, expected=True)
        estimate = estimator(policy, reward, expert, agent, alpha_gamma)
        h, t = flatten(estimate.h).astype(jnp.float64), flatten(truth)
        return h @ t / (jnp.linalg.norm(h) * jnp.linalg.norm(t))

    crosses = {"raw": Raw(), "centred": Centred(), "adjoint": Adjoint(features)}
    agents = [rollout(lqr, policy, 64, key=key) for key in jr.split(jr.key(2), DRAWS)]
    return {
        (name, n): jnp.mean(jnp.stack([cosine(cross, agent[:n]) for agent in agents]))
        for name, cross in crosses.items()
        for n in ((16, 64) if name == "adjoint" else (64,))
    }


@pytest.mark.slow
def test_adjoint_needs_64_trajectories_for_a_cosine_of_098(cosines):
    assert cosines["adjoint", 64] > 0.98


@pytest.mark.slow
def test_adjoint_with_16_trajectories_beats_the_others_with_64(cosines):
    assert cosines["adjoint", 16] > 0.9
    assert cosines["adjoint", 16] > cosines["centred", 64]
    assert cosines["centred", 64] > cosines["raw", 64]
