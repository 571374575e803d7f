"""The Fisher factor of every head: against the KL's Hessian and sampled scores."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.policies import CategoricalHead, CensoredHead, GaussianHead

HEADS = {
    "categorical": CategoricalHead(3),
    "diagonal": GaussianHead(2, "diagonal"),
    "full": GaussianHead(3, "full"),
    "state": GaussianHead(2, "state"),
    "squashed": GaussianHead(2, "state", (-2.0, 2.0)),
    "censored": CensoredHead(2, (-1.0, 3.0), "state"),
}
each_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())


def outputs(head, key):
    return 0.5 * jr.normal(key, (head.network_size + head.free_size,))


@each_head
def test_fisher_factor_squares_to_the_hessian_of_the_kl(getkey, head):
    """Fails for a factor of two on the log-scales, or without their mixed terms."""
    z = outputs(head, getkey())

    @jax.jit
    def both(z):
        kl = lambda other: head.distribution(z).kl(head.distribution(other))
        factor = head.fisher_factor(z)
        return factor @ factor.T, jax.hessian(kl)(z)

    fisher, hessian = both(z)
    np.testing.assert_allclose(fisher, hessian, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["categorical", "full", "squashed", "censored"])
def test_fisher_factor_squares_to_the_covariance_of_scores(getkey, kind):
    """The definition itself, within five standard errors."""
    head = HEADS[kind]
    z = outputs(head, getkey())

    @jax.jit
    def scores(keys):
        def score(key):
            action = head.distribution(z).sample(key=key)
            return jax.grad(lambda z: head.distribution(z).log_prob(action))(z)

        return jax.vmap(score)(keys)

    rows = np.asarray(scores(jr.split(getkey(), 20_000)))
    products = rows[:, :, None] * rows[:, None, :]
    factor = np.asarray(head.fisher_factor(z))
    error = products.mean(axis=0) - factor @ factor.T
    standard_error = products.std(axis=0) / np.sqrt(len(products))
    assert np.max(np.abs(error) / standard_error) < 5


def test_a_log_scale_beyond_its_bounds_has_no_score():
    """The clip is part of the policy: its derivative is zero out there."""
    head = GaussianHead(1, "diagonal", log_scale_bounds=(-1.0, 1.0))
    factor = head.fisher_factor(jnp.array([0.0, 5.0]))
    assert factor[1].tolist() == [0.0, 0.0]


def test_the_scale_of_a_full_covariance_is_any_triangular_factor():
    head = GaussianHead(2, "full")
    tril = head.scale_tril(jnp.array([0.0, jnp.log(2.0), 0.7]))
    np.testing.assert_allclose(tril, [[1.0, 0.0], [0.7, 2.0]], rtol=1e-12)


@each_head
def test_sizes_add_up_to_what_the_distribution_reads(getkey, head):
    z = jnp.zeros(head.network_size + head.free_size)
    assert head.fisher_factor(z).shape[0] == z.size


def test_only_a_finite_box_can_be_squashed_into():
    with pytest.raises(ValueError, match="finite box"):
        GaussianHead(1, "diagonal", (-float("inf"), float("inf")))
