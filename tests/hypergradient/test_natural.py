"""Natural steps against the Hessian of the exact outer loss."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import LQR, CartPole
from hyperirl.hypergradient import Exact, NaturalStep
from hyperirl.hypergradient import natural as natural_steps
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.policies import mlp_policy, softmax_table
from hyperirl.rewards import TableReward
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete

HEADS_OR_TAILS = mlp_policy(4, Discrete(2), hidden=(), key=jr.key(2))


@pytest.fixture(scope="module")
def reward(problem) -> TableReward:
    """With it all values are zero, ends included, and the uniform policy is optimal."""
    return TableReward(jnp.full((2, 2), -jnp.log(2.0) * problem.temperature))


@pytest.fixture(scope="module")
def natural(features) -> NaturalStep:
    return NaturalStep(features, damping=1e-2, ridge=1e-13)


@pytest.fixture(scope="module")
def hessian(mdp, problem, everything, reward):
    """Of the exact outer loss, by central differences of its exact gradient.

    The expert is the uniform policy, so that it is explained, and the Fisher matrix of
    the demonstrations is their Hessian.
    """
    weights = exact.tabular.demo_weights(everything, problem.discount, 2)
    gradient = jax.jit(
        lambda table: exact.tabular.hypergradient(mdp, table, problem, weights)
    )
    columns = []
    for direction in 1e-4 * jnp.eye(4).reshape(4, 2, 2):
        above = gradient(reward.table + direction)
        below = gradient(reward.table - direction)
        columns.append(np.ravel((above - below) / 2e-4))
    return np.stack(columns, axis=1)


def test_the_metric_is_the_hessian_of_the_outer_loss(
    natural, problem, everything, reward, hessian
):
    """Fails without the discount, the square of the temperature, or the centring."""
    policy = softmax_table(jnp.zeros((2, 2)))
    root = eqx.filter_jit(natural.root)(policy, reward, everything, everything, problem)
    np.testing.assert_allclose(root.T @ root, hessian, atol=1e-5 * hessian.max())


def test_the_step_is_a_newton_step_that_knows_its_length(
    natural, problem, everything, reward, hessian
):
    """`(H + damping) d = h` for an `h` in the range of `H`; `d' H d / 2` is reported.

    A reward that changes the policy in no state, a potential, is in the null space.
    """
    policy = softmax_table(jnp.zeros((2, 2)))
    h = hessian @ np.array([0.3, -0.2, 0.5, 0.1])
    step, divergence = eqx.filter_jit(natural)(
        TableReward(jnp.asarray(h.reshape(2, 2))),
        policy,
        reward,
        everything,
        everything,
        problem,
    )
    d = np.ravel(step.table)
    values = np.linalg.eigvalsh(hessian)
    kept = values[values > 1e-6 * values[-1]]
    damping = 1e-2 * kept.mean()
    assert len(kept) == 2  # Four entries, two states: two potentials.
    np.testing.assert_allclose(hessian @ d + damping * d, h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(divergence, d @ hessian @ d / 2, rtol=1e-4)


def test_the_exact_estimator_is_the_oracle(mdp, problem, everything, reward):
    weights = exact.tabular.demo_weights(everything[:5], problem.discount, 2)
    expected = exact.tabular.hypergradient(mdp, reward.table, problem, weights)
    estimate = eqx.filter_jit(Exact(mdp))(
        softmax_table(jnp.zeros((2, 2))), reward, everything[:5], everything, problem
    )
    np.testing.assert_allclose(estimate.h.table, expected, rtol=1e-12)


@pytest.mark.parametrize("environment", [CartPole(), LQR(max_action=5.0)])
def test_exact_hypergradients_of_other_tasks_are_refused(environment):
    with pytest.raises(ValueError, match="has no closed form; .*method=fisher"):
        Exact(environment)


def test_exact_hypergradients_of_lqr_are_of_quadratic_rewards(problem, everything):
    with pytest.raises(ValueError, match="for quadratic rewards, got TableReward"):
        Exact(LQR())(
            softmax_table(jnp.zeros((2, 2))),
            TableReward(jnp.zeros((2, 2))),
            everything,
            everything,
            problem,
        )


def test_the_spread_is_positive_where_the_expert_is_far_from_the_agent(problem):
    """Fails if it is summed in `float32`: there is no root then, and no step."""
    near = rollout(CartPole(), HEADS_OR_TAILS, 4, key=jr.key(0), horizon=50)
    far = eqx.tree_at(lambda t: t.observations, near, 30 * near.observations)
    features = random_features(input_normalizer(near), Discrete(2), key=jr.key(1))
    spread = natural_steps._spread(features, HEADS_OR_TAILS, far, problem, 1)
    values = np.linalg.eigvalsh(np.asarray(spread, np.float64))
    assert values[0] > -1e-12 * values[-1]
