"""The three distributions against scipy, quadrature and their own draws."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, stats

from hyperirl.policies import Categorical, Gaussian, SquashedGaussian

NUM_DRAWS = 4096

LOGITS = jnp.array([0.5, -1.0, 2.0])
P = np.exp(LOGITS) / np.exp(LOGITS).sum()
MEAN = jnp.array([0.3, -0.7])
TRIL = jnp.array([[0.8, 0.0], [-0.5, 1.3]])
COVARIANCE = np.asarray(TRIL @ TRIL.T)
OTHER = Gaussian(jnp.array([-0.2, 0.4]), jnp.array([[1.1, 0.0], [0.6, 0.5]]))


def draws(distribution, key):
    sample = jax.jit(jax.vmap(lambda key: distribution.sample(key=key)))
    return np.asarray(sample(jr.split(key, NUM_DRAWS)))


def assert_mean(values, expected):
    """The mean of independent values, within five standard errors."""
    error = values.mean(axis=0) - expected
    standard_error = values.std(axis=0) / np.sqrt(len(values))
    assert np.max(np.abs(error) / standard_error) < 5


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_nodes_have_the_mean_and_the_covariance_of_a_gaussian(size):
    root = jnp.tril(jnp.linspace(0.5, 1.5, size**2).reshape(size, size))
    mean = jnp.linspace(-1.0, 1.0, size)
    nodes, weights = Gaussian(mean, root).quadrature()
    np.testing.assert_allclose(weights @ nodes, mean, atol=1e-12)
    away = np.asarray(nodes - mean[None, :])
    covariance = (away * np.asarray(weights)[:, None]).T @ away
    np.testing.assert_allclose(covariance, root @ root.T, atol=1e-12)


def test_categorical_log_prob_is_the_log_of_softmax():
    log_probs = [Categorical(LOGITS).log_prob(jnp.asarray(a)) for a in range(3)]
    np.testing.assert_allclose(log_probs, np.log(P), rtol=1e-12)


def test_categorical_entropy():
    np.testing.assert_allclose(
        Categorical(LOGITS).entropy(), stats.entropy(P), rtol=1e-12
    )


def test_categorical_kl():
    q = np.array([0.2, 0.5, 0.3])
    kl = Categorical(LOGITS).kl(Categorical(jnp.log(q)))
    np.testing.assert_allclose(kl, stats.entropy(P, q), rtol=1e-12)


def test_categorical_draws_have_its_probabilities(getkey):
    assert_mean(np.eye(3)[draws(Categorical(LOGITS), getkey())], P)


def test_categorical_draws_are_32_bit_numbers(getkey):
    """`argmax` counts in 64 bits, and mixes with nothing."""
    assert Categorical(LOGITS).sample(key=getkey()).dtype == jnp.int32
    assert Categorical(LOGITS).mode().dtype == jnp.int32


def test_impossible_choices_leave_entropy_and_kl_finite():
    """`0 log 0` is 0 and not NaN."""
    sure = Categorical(jnp.array([0.0, -jnp.inf, 0.0]))
    np.testing.assert_allclose(sure.entropy(), np.log(2), rtol=1e-12)
    np.testing.assert_allclose(sure.kl(sure), 0.0, atol=1e-12)


def test_gaussian_log_prob():
    x = jnp.array([1.0, 0.2])
    expected = stats.multivariate_normal(np.asarray(MEAN), COVARIANCE).logpdf(x)
    np.testing.assert_allclose(Gaussian(MEAN, TRIL).log_prob(x), expected, rtol=1e-12)


def test_gaussian_entropy():
    expected = stats.multivariate_normal(np.asarray(MEAN), COVARIANCE).entropy()
    np.testing.assert_allclose(Gaussian(MEAN, TRIL).entropy(), expected, rtol=1e-12)


def expected_log_ratio(p, q):
    """`E_p [log p - log q]` by quadrature: exact, for it is quadratic in the noise."""
    ratio = lambda x: p.log_prob(x) - q.log_prob(x)
    nodes, weights = p.quadrature()
    return weights @ jax.vmap(ratio)(nodes)


def test_gaussian_kl_is_the_expected_log_ratio():
    p = Gaussian(MEAN, TRIL)
    np.testing.assert_allclose(p.kl(OTHER), expected_log_ratio(p, OTHER), rtol=1e-10)


def test_gaussian_draws_have_its_mean_and_covariance(getkey):
    """Fails if the scale is transposed: `TRIL` is not symmetric."""
    x = draws(Gaussian(MEAN, TRIL), getkey())
    centered = x - np.asarray(MEAN)
    assert_mean(x, np.asarray(MEAN))
    assert_mean(centered[:, :, None] * centered[:, None, :], COVARIANCE)


def squashed(mean=0.3, scale=0.8, low=-1.0, high=3.0, dtype=jnp.float64):
    gaussian = Gaussian(jnp.array([mean], dtype), jnp.array([[scale]], dtype))
    return SquashedGaussian(gaussian, low, high)


def test_squashed_density_integrates_to_one():
    """Fails if the slope of tanh or the width of the box is left out."""
    density = jax.jit(lambda x: jnp.exp(squashed().log_prob(x[None])))
    total, _ = integrate.quad(lambda x: float(density(x)), -1, 3)
    np.testing.assert_allclose(total, 1, rtol=1e-7)


def test_squashed_log_prob_is_that_of_the_transformed_normal():
    action = 2.2
    unit = (action - 1) / 2
    expected = stats.norm(0.3, 0.8).logpdf(np.arctanh(unit)) - np.log(2 * (1 - unit**2))
    np.testing.assert_allclose(
        squashed().log_prob(jnp.array([action])), expected, rtol=1e-12
    )


@pytest.mark.parametrize("mean", [0.0, 3.0])
@pytest.mark.parametrize("scale", [0.05, 1.0, np.exp(2)])
def test_squashed_entropy(mean, scale):
    """At the largest scale a Gauss-Hermite rule of 32 nodes is wrong by 0.08."""
    log_slope = lambda u: np.log(2) + 2 * (np.log(2) - np.logaddexp(u, -u))
    integrand = lambda z: stats.norm.pdf(z) * log_slope(mean + scale * z)
    bend = np.clip(-mean / scale, -8, 8)
    expected, _ = integrate.quad(integrand, -9, 9, points=[bend], limit=200)
    expected += stats.norm(mean, scale).entropy()
    np.testing.assert_allclose(squashed(mean, scale).entropy(), expected, atol=2e-5)


def test_squashed_kl_is_the_expected_log_ratio():
    p, q = squashed(0.3, 0.2), squashed(-0.1, 0.4)
    np.testing.assert_allclose(p.kl(q), expected_log_ratio(p, q), rtol=1e-8)


def test_squashed_draws_stay_in_the_box_and_have_its_log_prob(getkey):
    draw = jax.jit(jax.vmap(lambda key: squashed().sample_and_log_prob(key=key)))
    actions, log_probs = draw(jr.split(getkey(), 1000))
    assert (actions > -1).all() and (actions < 3).all()
    again = jax.jit(jax.vmap(squashed().log_prob))(actions)
    np.testing.assert_allclose(log_probs, again, rtol=1e-6)


@pytest.mark.parametrize("action", [-1.0, 3.0])
def test_squashed_log_prob_is_finite_on_the_border(action):
    """Executed actions are often clipped to exactly the border; in `float32`."""
    log_prob = lambda mean: squashed(mean, dtype=jnp.float32).log_prob(
        jnp.array([action], jnp.float32)
    )
    value, slope = jax.jit(jax.value_and_grad(log_prob))(jnp.float32(0.3))
    assert np.isfinite(value) and np.isfinite(slope)


def test_log_slope_does_not_overflow():
    u = jnp.array([-200.0, 200.0], jnp.float32)
    expected = np.log(2) + 2 * np.log(2) - 400
    np.testing.assert_allclose(squashed().log_slope(u), expected, rtol=1e-6)


def test_squashed_mode_is_the_squashed_mean():
    np.testing.assert_allclose(squashed().mode(), 1 + 2 * np.tanh(0.3), rtol=1e-12)
