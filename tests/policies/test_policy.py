"""Policies: the score's factors, the classical special cases, and the padding."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from hyperirl.networks import Normalizer, partition
from hyperirl.policies import linear_gaussian, log_probs, mlp_policy, softmax_table
from hyperirl.spaces import Box, Discrete
from hyperirl.trajectories import Trajectories

OBS = 3
BOX = Box(2, -2.0, 2.0)
F64 = jnp.float64


def make(kind, key):
    """A policy of every kind, in `float64`."""
    network = lambda space, **options: mlp_policy(
        OBS, space, key=key, hidden=(5, 4), dtype=F64, **options
    )
    normalizer = Normalizer(jnp.array([1.0, 0.0, -1.0]), jnp.array([2.0, 1.0, 0.5]))
    tril = jnp.array([[0.5, 0.0], [0.2, 0.3]])
    kinds = {
        "categorical": lambda: network(Discrete(2)),
        "diagonal": lambda: network(BOX),
        "full": lambda: network(BOX, covariance="full", normalizer=normalizer),
        "state": lambda: network(BOX, covariance="state"),
        "squashed": lambda: network(BOX, squash=True, use_bias=False),
        "softmax table": lambda: softmax_table(jr.normal(key, (OBS, 4))),
        "linear-Gaussian": lambda: linear_gaussian(jr.normal(key, (2, OBS)), tril),
    }
    return kinds[kind]()


KINDS = (
    "categorical",
    "diagonal",
    "full",
    "state",
    "squashed",
    "softmax table",
    "linear-Gaussian",
)


@pytest.mark.parametrize("kind", KINDS)
def test_score_factors_are_the_gradient_in_the_order_of_the_parameters(getkey, kind):
    """The contract of the curvature code, for the score of a drawn action."""
    policy = make(kind, getkey())
    observation = jr.normal(getkey(), (OBS,))
    action = policy.sample(observation, key=getkey())

    @eqx.filter_jit
    def both(policy):
        params, rest = partition(policy)
        log_prob = lambda params: eqx.combine(params, rest).log_prob(
            observation, action
        )
        of_outputs = lambda z: policy.head.distribution(z).log_prob(action)
        delta = jax.grad(of_outputs)(policy.outputs(observation))
        gradient = ravel_pytree(jax.grad(log_prob)(params))[0]
        return gradient, policy.score_factors(observation, delta)

    gradient, factors = both(policy)
    blocks = []
    for i, (activation, delta) in enumerate(factors):
        if activation is not None:
            blocks.append(np.outer(delta, activation))
        if activation is None or policy.network.layers[i].bias is not None:
            blocks.append(delta)
    flat = np.concatenate([np.ravel(block) for block in blocks])
    np.testing.assert_allclose(flat, gradient, rtol=1e-9, atol=1e-12)


def test_the_softmax_table_holds_the_logits_of_each_state(getkey):
    logits = jr.normal(getkey(), (3, 4))
    distribution = softmax_table(logits).distribution(jnp.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(distribution.logits, logits[1], rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e-6])
def test_the_linear_gaussian_policy_has_the_gain_and_scale_given(scale):
    """Also a scale beyond the bounds that keep a trained network's in check."""
    gain = jnp.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]])
    tril = scale * jnp.array([[0.5, 0.0], [0.2, 0.3]])
    gaussian = linear_gaussian(gain, tril).distribution(jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gaussian.mean, [-7.0, 0.5], rtol=1e-12)
    np.testing.assert_allclose(gaussian.scale_tril, tril, rtol=1e-12)


def test_observations_are_normalized_first(getkey):
    policy = make("full", getkey())
    plain = eqx.tree_at(lambda p: p.normalizer, policy, None)
    x = jnp.array([3.0, 1.0, 0.0])
    seen = jnp.array([1.0, 1.0, 2.0])
    np.testing.assert_allclose(policy.outputs(x), plain.outputs(seen), rtol=1e-12)


@pytest.mark.parametrize("covariance", ["diagonal", "full", "state"])
def test_gaussian_policies_start_with_the_scale_asked_for(getkey, covariance):
    policy = mlp_policy(
        OBS,
        BOX,
        key=getkey(),
        hidden=(5, 4),
        covariance=covariance,
        initial_log_scale=-1.0,
        dtype=F64,
    )
    tril = policy.distribution(jnp.zeros(OBS)).scale_tril
    np.testing.assert_allclose(tril, np.exp(-1.0) * np.eye(2), rtol=1e-12)


def test_a_state_dependent_scale_needs_a_bias_to_start_from(getkey):
    with pytest.raises(ValueError, match="use_bias=True"):
        mlp_policy(
            OBS,
            BOX,
            key=getkey(),
            hidden=(5, 4),
            covariance="state",
            use_bias=False,
            dtype=F64,
        )


def test_policies_are_in_single_precision_by_default(getkey):
    """With 64-bit types on, one stray default would double the cost of everything."""
    policy = mlp_policy(OBS, BOX, key=getkey(), hidden=(5, 4), squash=True)
    observation = jnp.zeros(OBS, jnp.float32)
    action, log_prob, entropy = eqx.filter_eval_shape(
        lambda p, x, key: (
            p.sample(x, key=key),
            p.log_prob(x, jnp.zeros(2, jnp.float32)),
            p.entropy(x),
        ),
        policy,
        observation,
        getkey(),
    )
    assert action.dtype == log_prob.dtype == entropy.dtype == jnp.float32


def padded(key):
    """Two episodes, the second of one step, with NaN after it."""
    observations = jr.normal(key, (2, 4, OBS)).at[1, 2:].set(jnp.nan)
    actions = jnp.zeros((2, 3, 2)).at[1, 1:].set(jnp.nan)
    mask = jnp.array([[True, True, True], [True, False, False]])
    return Trajectories(observations, actions, mask, jnp.zeros(2, bool))


@pytest.mark.parametrize("kind", ["full", "squashed"])
def test_log_probs_never_read_the_padding(getkey, kind):
    """NaN there would reach the gradient through `0 * NaN`."""
    policy, trajectories = make(kind, getkey()), padded(getkey())

    @eqx.filter_jit
    def both(policy):
        total = lambda policy: jnp.sum(log_probs(policy, trajectories))
        return log_probs(policy, trajectories), eqx.filter_grad(total)(policy)

    values, gradient = both(policy)
    assert values[1, 1:].tolist() == [0.0, 0.0]
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((values, gradient)))


def test_log_probs_are_those_of_each_step(getkey):
    policy, trajectories = make("diagonal", getkey()), padded(getkey())
    value = log_probs(policy, trajectories)[0, 2]
    expected = policy.log_prob(trajectories.observations[0, 2], jnp.zeros(2))
    np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_acting_with_noise_drawn_in_advance_is_sampling(getkey, kind):
    policy, key = make(kind, getkey()), getkey()
    observation = jr.normal(getkey(), (OBS,))
    early = policy.act(observation, policy.draw_noise(key=key))
    np.testing.assert_array_equal(early, policy.sample(observation, key=key))
