"""Clipped Gaussians by quadrature: chances at the bounds and a density inside."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

from hyperirl.policies import CensoredGaussian, CensoredHead, mlp_policy
from hyperirl.problem import problem
from hyperirl.saving import load_policy, save_policy
from hyperirl.scores import score_rows
from hyperirl.spaces import Box
from hyperirl.trajectories import Trajectories

LOW, HIGH = -1.0, 3.0
CASES = {
    "inside": (0.7, 0.3),
    "wide": (0.5, 5.0),
    "at a bound": (2.9, 0.4),
    "beyond": (4.5, 0.8),
    "below": (-6.0, 1.5),
}
each_case = pytest.mark.parametrize("mean, scale", CASES.values(), ids=CASES)


def censored(mean, scale, dtype=jnp.float64):
    as_vector = lambda x: jnp.atleast_1d(jnp.asarray(x, dtype))
    return CensoredGaussian(as_vector(mean), as_vector(scale), LOW, HIGH)


PANELS = np.linspace(LOW, HIGH, 201)
PLACES, SIZES = np.polynomial.legendre.leggauss(8)
HALVES = np.diff(PANELS)[:, None] / 2
INSIDE = (PANELS[:-1, None] + HALVES * (1 + PLACES)).ravel()
NODES = jnp.asarray(np.concatenate([INSIDE, [LOW, HIGH]]))
WEIGHTS = jnp.asarray(np.concatenate([(HALVES * SIZES).ravel(), [1.0, 1.0]]))


@functools.partial(jax.jit, static_argnums=2)
def expect(mean, scale, function):
    """`E f(a)` from `log_prob`: more nodes inside than any scale needs, and both ends.

    A bound is no length but a probability, so its weight is 1.
    """
    density = jnp.exp(log_prob(mean, scale, NODES))
    return jnp.sum(WEIGHTS * density * jax.vmap(function)(NODES))


def log_prob(mean, scale, actions):
    return jax.vmap(lambda x: censored(mean, scale).log_prob(x[None]))(actions)


@each_case
def test_chances_and_density_sum_to_one(mean, scale):
    """Fails if a bound has the density of the inside, or the mass of the other."""
    np.testing.assert_allclose(expect(mean, scale, jnp.ones_like), 1, rtol=1e-10)


@each_case
def test_log_prob_is_that_of_a_clipped_normal(mean, scale):
    normal, ours = stats.norm(mean, scale), censored(mean, scale)
    at = lambda x: float(ours.log_prob(jnp.array([x])))
    np.testing.assert_allclose(at(LOW), normal.logcdf(LOW), rtol=1e-10)
    np.testing.assert_allclose(at(HIGH), normal.logsf(HIGH), rtol=1e-10)
    np.testing.assert_allclose(at(0.4), normal.logpdf(0.4), rtol=1e-10)
    assert at(HIGH + 1.0) == at(HIGH)  # As it is executed.


@each_case
def test_entropy_and_kl(mean, scale):
    ours, other = censored(mean, scale), censored(0.2, 1.1)
    log_p, log_q = (lambda x, d=d: d.log_prob(x[None]) for d in (ours, other))
    entropy = expect(mean, scale, lambda x: -log_p(x))
    kl = expect(mean, scale, lambda x: log_p(x) - log_q(x))
    np.testing.assert_allclose(ours.entropy(), entropy, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.kl(other), kl, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.kl(ours), 0, atol=1e-10)


@each_case
def test_scores_have_mean_zero(mean, scale):
    """The mass at the bounds moves with the parameters: its score is in the balance."""
    value = lambda p, x: censored(p[0], p[1]).log_prob(x[None])
    score = lambda i: lambda x: jax.grad(value)(jnp.array([mean, scale]), x)[i]
    for i in range(2):
        np.testing.assert_allclose(expect(mean, scale, score(i)), 0, atol=1e-9)


@each_case
def test_the_rule_of_nodes_gives_expectations_and_their_derivatives(mean, scale):
    function = lambda x: jnp.tanh(x) + 0.1 * x**2

    def by_rule(parameters):
        nodes, weights = censored(*parameters).quadrature()
        return weights @ function(nodes[:, 0])

    exact = lambda parameters: expect(parameters[0], parameters[1], function)
    parameters = jnp.array([mean, scale])
    value, slope = jax.jit(jax.value_and_grad(by_rule))(parameters)
    expected, expected_slope = jax.value_and_grad(exact)(parameters)
    np.testing.assert_allclose(value, expected, atol=2e-3)
    np.testing.assert_allclose(slope, expected_slope, atol=2e-2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_rule_of_nodes_has_mean_and_covariance(size):
    means, scales = (
        jnp.array([0.7, 3.5, -0.9])[:size],
        jnp.array([0.5, 1.0, 2.0])[:size],
    )
    ours = censored(means, scales)
    nodes, weights = ours.quadrature()
    mean, variance = ours.moments()
    centered = nodes - mean[None, :]
    tolerance = 1e-8 if size > 2 else 0.05
    np.testing.assert_allclose(weights @ nodes, mean, atol=tolerance)
    covariance = (weights[:, None] * centered).T @ centered
    np.testing.assert_allclose(covariance, np.diag(variance), atol=tolerance)
    assert (weights >= 0).all()


@each_case
def test_mean_and_variance(mean, scale):
    first, variance = censored(mean, scale).moments()
    expected = expect(mean, scale, lambda x: x)
    squares = expect(mean, scale, lambda x: (x - expected) ** 2)
    np.testing.assert_allclose(first[0], expected, atol=1e-7)
    np.testing.assert_allclose(variance[0], squares, atol=1e-7)


def test_draws_are_clipped_and_as_likely_as_said(getkey):
    ours = censored(2.0, 1.5)
    draws = jax.vmap(lambda key: ours.sample(key=key))(jr.split(getkey(), 4000))[:, 0]
    assert draws.min() >= LOW and draws.max() == HIGH
    chance = float(jnp.exp(ours.log_chances()[1][0]))
    share = float(jnp.mean(draws == HIGH))
    assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 4000)


def test_what_is_climbed_has_the_derivative_of_the_entropy(getkey):
    """A draw of the log-likelihood alone would miss the jump at the bounds."""

    def surprise(mean, key):
        return -censored(mean, 0.8).sample_and_log_prob(key=key)[1]

    slopes = jax.vmap(jax.grad(surprise), (None, 0))(2.5, jr.split(getkey(), 10))
    expected = jax.grad(lambda mean: censored(mean, 0.8).entropy())(2.5)
    np.testing.assert_allclose(slopes, expected, rtol=1e-10)


@pytest.mark.parametrize("z", [-40.0, 0.0, 40.0])
@pytest.mark.parametrize("action", [LOW, 0.3, HIGH])
def test_nothing_is_infinite_far_from_the_box(z, action):
    """In `float32`, and its derivatives; at the smallest scale."""
    head = CensoredHead(1, (LOW, HIGH))

    @jax.jit
    def everything(outputs):
        ours = head.distribution(outputs)
        value = ours.log_prob(jnp.array([action], jnp.float32)) + ours.entropy()
        return value + ours.kl(head.distribution(jnp.zeros(2, jnp.float32)))

    outputs = jnp.array([z, -20.0], jnp.float32)
    assert np.isfinite(everything(outputs))
    assert np.isfinite(jax.grad(everything)(outputs)).all()
    assert np.isfinite(head.fisher_factor(outputs)).all()


def test_the_scale_has_a_lower_limit_that_is_stated():
    head = CensoredHead(2, (-3.0, 3.0), "state")
    np.testing.assert_allclose(head.min_scale, 0.03)
    scale = head.distribution(jnp.array([0.0, 0.0, -50.0, -50.0])).scale
    np.testing.assert_allclose(scale, 0.03, rtol=1e-6)


def test_a_policy_with_clipped_actions_has_score_rows_and_can_be_saved(
    getkey, tmp_path
):
    policy = mlp_policy(3, Box(2, -1.0, 1.0), key=getkey(), hidden=(4,), censor=True)
    observations = jr.normal(getkey(), (2, 6, 3), jnp.float32)
    actions = jnp.clip(jr.normal(getkey(), (2, 5, 2), jnp.float32), -1, 1)
    mask = jnp.ones((2, 5), bool)
    episodes = Trajectories(observations, actions, mask, jnp.zeros(2, bool))
    setting = problem(0.5, 0.9)
    for expected in (False, True):
        rows = score_rows(policy, episodes, setting, expected=expected)
        product = rows.rmv(rows.mv(jnp.ones(rows.dim, jnp.float32)))
        assert np.isfinite(product).all() and float(jnp.sum(product)) > 0
    save_policy(policy, tmp_path / "policy.npz")
    again = load_policy(tmp_path / "policy.npz")
    np.testing.assert_array_equal(
        again.log_prob(observations[:, :-1], actions),
        policy.log_prob(observations[:, :-1], actions),
    )


@pytest.mark.parametrize("options", [dict(squash=True), dict(covariance="full")])
def test_clipped_actions_are_neither_squashed_nor_correlated(options, getkey):
    with pytest.raises(ValueError, match="censor"):
        mlp_policy(3, Box(2, -1.0, 1.0), key=getkey(), censor=True, **options)


def test_only_a_finite_box_can_be_clipped_to():
    with pytest.raises(ValueError, match="finite box"):
        CensoredHead(1, (-float("inf"), 1.0))


def test_the_share_at_the_least_scale_is_that_of_the_components():
    head = CensoredHead(2, (LOW, HIGH), "state")
    z = jnp.asarray([0.0, 0.0, -9.0, 0.0])
    assert head.at_min_scale(z) == 0.5
    assert head.distribution(z).scale[0] == pytest.approx(head.min_scale)
    assert head.at_min_scale(jnp.zeros(4)) == 0


def test_what_is_nearer_to_a_bound_than_rounding_is_at_it():
    """Fails if a bound that was read from a file of another precision is a density."""
    exact, near, inside = log_prob(
        2.9, 0.4, jnp.asarray([HIGH, HIGH - 1e-7, HIGH - 1e-3])
    )
    assert exact == near != inside
