"""The estimators against exact answers on an MDP whose episodes are all enumerated.

Every probability of the MDP is a multiple of one half and the policy is uniform, so a
batch in which each episode stands as often as it is likely has exact averages: nothing
here is sampled, and the tolerances are numerical.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.hypergradient import MLIRL, Centred, Fisher, Raw
from hyperirl.hypergradient.cross import score_products
from hyperirl.hypergradient.estimate import weighted_reward_gradient
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward

HORIZON = 3  # Of the `mdp`.


def uniform():
    return softmax_table(jnp.zeros((2, 2)))


def flat(table):
    """Policy parameters are laid out action by action, tables state by state."""
    return jnp.ravel(table.T)


def test_raw_cross_product_is_the_cross_derivative(mdp, problem, everything):
    """Fails if the sum is not causal, a discount is dropped or the sign is wrong."""
    v = jr.normal(jr.key(1), (2, 2), jnp.float64)
    cross = exact.tabular.cross_derivative(
        mdp, jnp.zeros((2, 2)), problem, horizon=HORIZON
    )
    expected = -(cross @ v.reshape(-1)).reshape(2, 2)

    @eqx.filter_jit
    def estimate(v):
        b = Raw().weights(uniform(), everything, problem, flat(v))
        reward = TableReward(jnp.zeros((2, 2)))
        return weighted_reward_gradient(reward, everything, problem, b).table

    np.testing.assert_allclose(estimate(v), expected, atol=1e-12)


@pytest.mark.parametrize("expected_fisher", [False, True])
def test_adjoint_hypergradient_is_exact_even_though_episodes_are_cut(
    mdp, problem, everything, expert, adjoint, expected_fisher
):
    """The oracle differentiates soft value iteration over an infinite horizon.

    With the reward `-alpha log 2` every value is zero, ends of the task included, and
    the uniform policy is optimal. The state weights of a batch that is
    cut after three steps cancel between `F` and the cross product, and the critic sees
    past the cut. Fails without the discount in the critic, the temperature, the mask of
    terminations or the right transpose.
    """
    reward = TableReward(jnp.full((2, 2), -jnp.log(2.0) * problem.temperature))
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    expected = exact.tabular.hypergradient(mdp, reward.table, problem, weights)
    estimator = Fisher(Explicit(damping=1e-10), adjoint, expected=expected_fisher)
    estimate = eqx.filter_jit(estimator)(uniform(), reward, expert, everything, problem)
    # Damping and ridge are not zero.
    np.testing.assert_allclose(estimate.h.table, expected, rtol=1e-6, atol=1e-7)


def test_raw_hypergradient_of_cut_episodes_is_biased(mdp, problem, everything, expert):
    """What the adjoint estimator is spared: the raw one does not see past the cut."""
    reward = TableReward(jnp.full((2, 2), -jnp.log(2.0) * problem.temperature))
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    finite = exact.tabular.implicit_hypergradient(
        mdp, jnp.zeros((2, 2)), problem, weights, damping=1e-10, horizon=HORIZON
    )
    infinite = exact.tabular.hypergradient(mdp, reward.table, problem, weights)
    estimator = Fisher(Explicit(damping=1e-10), Raw())
    h = eqx.filter_jit(estimator)(uniform(), reward, expert, everything, problem).h
    np.testing.assert_allclose(h.table, finite, rtol=1e-6, atol=1e-7)
    assert jnp.linalg.norm(finite - infinite) > 0.1 * jnp.linalg.norm(infinite)


def test_ml_irl_is_the_difference_of_discounted_visits(
    mdp, problem, everything, expert
):
    """Fails if the temperature is dropped or agent and expert are exchanged."""
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    expected = exact.tabular.ml_irl_gradient(
        mdp, jnp.zeros((2, 2)), problem, weights, horizon=HORIZON
    )
    reward = TableReward(jnp.zeros((2, 2)))
    h = eqx.filter_jit(MLIRL())(uniform(), reward, expert, everything, problem).h
    np.testing.assert_allclose(h.table, expected, atol=1e-12)


@pytest.mark.parametrize("cross", [Raw(), Centred()])
def test_sampled_cross_products_are_unbiased(mdp, problem, everything, cross):
    """Batches of eight episodes, drawn many times, against the enumerated mean."""
    v = jr.normal(jr.key(1), (4,), jnp.float64)
    reward = TableReward(jnp.zeros((2, 2)))

    def estimate(batch):
        b = cross.weights(uniform(), batch, problem, v)
        return weighted_reward_gradient(reward, batch, problem, b).table

    @eqx.filter_jit
    def draws(key):
        picks = jr.randint(key, (4096, 8), 0, everything.num_episodes)
        batches = jax.tree.map(lambda leaf: leaf[picks], everything)
        return jax.vmap(estimate)(batches)

    b = Raw().weights(uniform(), everything, problem, v)
    mean = weighted_reward_gradient(reward, everything, problem, b).table
    samples = draws(jr.key(2))
    error = jnp.mean(samples, axis=0) - mean
    standard_error = jnp.std(samples, axis=0) / 64
    assert jnp.max(jnp.abs(error) / standard_error) < 5


def test_what_is_subtracted_is_the_mean_of_the_others_alone(mdp, problem, everything):
    """Of three whole episodes, at every time that of the other two."""
    whole = np.flatnonzero(np.asarray(everything.mask).all(axis=1))[[0, 100, 200]]
    batch = everything[whole]
    v = jr.normal(jr.key(1), (4,), jnp.float64)
    q = np.asarray(score_products(uniform(), batch, v))
    others = (q.sum(axis=0) - q) / 2
    expected = np.cumsum(q - others, axis=1)
    found = Centred().weights(uniform(), batch, problem, v)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.ptp(q, axis=0).max() > 0.1


def test_variance_falls_from_raw_to_centred_to_adjoint(
    mdp, problem, everything, adjoint
):
    v = jr.normal(jr.key(1), (4,), jnp.float64)
    reward = TableReward(jnp.zeros((2, 2)))

    @eqx.filter_jit
    def variance(cross, key):
        picks = jr.randint(key, (512, 64), 0, everything.num_episodes)
        batches = jax.tree.map(lambda leaf: leaf[picks], everything)

        def estimate(batch):
            b = cross.weights(uniform(), batch, problem, v)
            return weighted_reward_gradient(reward, batch, problem, b).table

        return jnp.sum(jnp.var(jax.vmap(estimate)(batches), axis=0))

    raw, centred, critic = (variance(c, jr.key(5)) for c in (Raw(), Centred(), adjoint))
    assert raw > 1.3 * centred
    assert centred > 2 * critic


def test_score_products_vanish_in_the_padding(everything):
    q = score_products(uniform(), everything, jnp.array([1.0, -2.0, 0.5, 3.0]))
    assert jnp.all(jnp.where(everything.mask, 0.0, q) == 0)
    assert jnp.any(q != 0)
