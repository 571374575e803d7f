"""The multilayer perceptron, what of a module is trained, and gradient factors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.networks import (
    MLP,
    Normalizer,
    linear_map,
    masked_normalizer,
    partition,
    pooled,
)


def test_mlp_is_affine_maps_with_tanh_between(getkey):
    network = MLP((3, 5, 2), key=getkey(), dtype=jnp.float64)
    bias = jr.normal(getkey(), (5,), jnp.float64)
    network = eqx.tree_at(lambda n: n.layers[0].bias, network, bias)
    x = jr.normal(getkey(), (3,), jnp.float64)
    first, second = (np.asarray(layer.weight) for layer in network.layers)
    expected = second @ np.tanh(first @ np.asarray(x) + np.asarray(bias))
    np.testing.assert_allclose(network(x), expected, rtol=1e-12)


def test_mlp_starts_orthogonal_with_the_gains_asked_for(getkey):
    network = MLP((4, 8, 3), key=getkey(), output_gain=0.1, dtype=jnp.float64)
    first, second = (layer.weight for layer in network.layers)
    np.testing.assert_allclose(first.T @ first, 2 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(second @ second.T, 0.01 * np.eye(3), atol=1e-12)


def test_layers_start_from_different_draws(getkey):
    network = MLP((4, 4, 4), key=getkey(), output_gain=2**0.5)
    first, second = (layer.weight for layer in network.layers)
    assert abs(float(jnp.sum(first * second))) < 7  # It is 8 if they are the same.


def test_mlp_is_in_single_precision_by_default(getkey):
    arrays = jax.tree.leaves(eqx.filter(MLP((3, 5, 2), key=getkey()), eqx.is_array))
    assert {array.dtype for array in arrays} == {jnp.dtype("float32")}


@pytest.mark.parametrize("sizes", [(3,), (), (3, 0, 1)], ids=str)
def test_mlp_refuses_sizes_that_make_no_network(getkey, sizes):
    with pytest.raises(ValueError, match="input size"):
        MLP(sizes, key=getkey())


@pytest.mark.parametrize("activation", [jnp.tanh, jax.nn.relu, jax.nn.silu])
def test_factors_make_up_the_gradient(getkey, activation):
    """Fails if slopes are taken at the wrong layer or weights are not transposed."""
    network = MLP((3, 5, 4, 2), key=getkey(), activation=activation, dtype=jnp.float64)
    x, delta = jr.normal(getkey(), (3,)), jr.normal(getkey(), (2,))

    @eqx.filter_jit
    def both(network):
        output = lambda network: delta @ network(x)
        return eqx.filter_grad(output)(network), network.factors(x, delta)

    gradient, factors = both(network)
    for layer, (activation, layer_delta) in zip(gradient.layers, factors, strict=True):
        outer = np.outer(layer_delta, activation)
        np.testing.assert_allclose(layer.weight, outer, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(layer.bias, layer_delta, rtol=1e-10, atol=1e-12)


def test_linear_map_multiplies(getkey):
    weight, x = jr.normal(getkey(), (2, 3)), jr.normal(getkey(), (3,))
    np.testing.assert_allclose(linear_map(weight)(x), weight @ x, rtol=1e-12)


def test_normalizer_shifts_and_scales():
    normalizer = Normalizer(jnp.array([1.0, -2.0]), jnp.array([2.0, 0.5]))
    assert normalizer(jnp.array([3.0, -1.0])).tolist() == [1.0, 2.0]


def test_normalizers_are_not_trained():
    """Else a gradient step would move the data's mean."""
    network = linear_map(jnp.ones((2, 2)))
    normalizer = Normalizer(jnp.zeros(2), jnp.ones(2))
    trained, rest = partition((network, normalizer))
    assert len(jax.tree.leaves(trained)) == 1
    assert eqx.tree_equal(eqx.combine(trained, rest), (network, normalizer))


def test_integers_are_not_trained():
    trained, _ = partition({"count": jnp.arange(3), "weight": jnp.ones(3)})
    assert trained["count"] is None


def test_pooled_moments_are_those_of_both_sets_together():
    draws = jr.normal(jr.key(0), (2, 1, 50, 3), jnp.float32) * 2 + 1
    first, second = draws[0], draws[1] * 3 - 4
    full = jnp.ones((1, 50), bool)
    found = pooled(masked_normalizer(first, full), masked_normalizer(second, full))
    both = masked_normalizer(
        jnp.concatenate([first, second], axis=1), jnp.ones((1, 100), bool)
    )
    np.testing.assert_allclose(found.mean, both.mean, rtol=1e-5)
    np.testing.assert_allclose(found.scale, both.scale, rtol=1e-5)
