"""Dense, factored and autodiff rows are the same matrix."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from curvature_problems import decaying_rows, network_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl.curvature import DenseRows, Factor, FactoredRows, as_rows
from hyperirl.curvature.preconditioned import row_sample

KINDS = ["dense", "factored", "autodiff", "closed"]


def both(kind, key, num_rows=9, dtype=jnp.float64):
    """The rows of one kind, and the same as a NumPy matrix."""
    dense, factored, autodiff, closed = network_rows(key, num_rows, dtype=dtype)
    rows = {
        "dense": DenseRows(dense),
        "factored": factored,
        "autodiff": autodiff,
        "closed": closed,
    }
    return rows[kind], np.asarray(dense, np.float64)


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_mv_is_the_matrix_times_a_vector(self, kind, getkey):
        rows, x = both(kind, getkey())
        v = jr.normal(getkey(), (21,), jnp.float64)
        np.testing.assert_allclose(rows.mv(v), x @ np.asarray(v), rtol=1e-12)

    def test_rmv_is_the_transpose_times_a_vector(self, kind, getkey):
        rows, x = both(kind, getkey())
        y = jr.normal(getkey(), (9,), jnp.float64)
        np.testing.assert_allclose(rows.rmv(y), np.asarray(y) @ x, atol=1e-13)

    def test_gram_is_rows_times_rows(self, kind, getkey):
        rows, x = both(kind, getkey())
        np.testing.assert_allclose(rows.gram(), x @ x.T, rtol=1e-12)

    def test_norms_and_diagonal_are_those_of_the_matrix(self, kind, getkey):
        rows, x = both(kind, getkey())
        np.testing.assert_allclose(rows.squared_norms(), (x**2).sum(1), rtol=1e-12)
        np.testing.assert_allclose(rows.column_squares(), (x**2).sum(0), rtol=1e-12)
        np.testing.assert_allclose(rows.squared_norm(), (x**2).sum(), rtol=1e-12)

    def test_a_block_past_the_end_is_filled_with_zeros(self, kind, getkey):
        rows, x = both(kind, getkey())
        block = jax.jit(lambda start: rows.block(start, 4))(jnp.asarray(7))
        np.testing.assert_allclose(block[:2], x[7:], rtol=1e-12)
        assert not np.any(block[2:])

    def test_a_block_comes_with_its_gram_matrix(self, kind, getkey):
        rows, x = both(kind, getkey())
        block, gram = jax.jit(lambda start: rows.block_and_gram(start, 4))(
            jnp.asarray(7)
        )
        expected = np.concatenate([x[7:], np.zeros((2, 21))])
        np.testing.assert_allclose(block, expected, rtol=1e-12)
        np.testing.assert_allclose(gram, expected @ expected.T, rtol=1e-12)

    def test_taken_rows_are_those_rows_and_zeros_past_the_end(self, kind, getkey):
        rows, x = both(kind, getkey())
        taken = rows.take(jnp.asarray([4, 0, 9, 4]))
        expected = np.stack([x[4], x[0], 0 * x[0], x[4]])
        np.testing.assert_allclose(taken.gram(), expected @ expected.T, atol=1e-13)

    def test_weights_multiply_the_rows(self, kind, getkey):
        rows, x = both(kind, getkey())
        weights = jnp.asarray(np.r_[0.0, np.arange(1.0, 9.0)])
        scaled = rows.scale(weights).block(0, 9)
        np.testing.assert_allclose(scaled, np.asarray(weights)[:, None] * x, rtol=1e-12)

    def test_the_shape_and_type_are_known(self, kind, getkey):
        rows, _ = both(kind, getkey(), dtype=jnp.float32)
        assert (rows.num_rows, rows.dim, rows.dtype) == (9, 21, jnp.float32)
        assert rows.mv(jnp.ones((21,), jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize("num_rows", [2048, 4100])
def test_chunked_products_cover_every_row_once(num_rows, getkey):
    rows, x = both("factored", getkey(), num_rows)
    v = np.arange(21.0)
    expected = x.T @ (x @ v)
    np.testing.assert_allclose(rows.normal_mv(jnp.asarray(v)), expected, rtol=1e-10)


def test_float64_products_of_float32_rows_have_float64_digits(getkey):
    factored = both("factored", getkey(), 4100, jnp.float32)[0]
    x = np.asarray(factored.astype(jnp.float64).block(0, 4100))
    v = np.arange(21.0)
    product = factored.normal_mv64(jnp.asarray(v))
    np.testing.assert_allclose(product, x.T @ (x @ v), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_of_weight_zero_contribute_nothing_whatever_they_hold(bad, getkey):
    _, factored, _, _ = network_rows(getkey(), 9)
    spoil = lambda x: x.at[3].set(bad)
    spoiled = [jax.tree.map(spoil, factor) for factor in factored.factors]
    weights = factored.weights.at[3].set(0.0)
    rows = FactoredRows(spoiled, weights)
    clean = FactoredRows(factored.factors, weights)
    y, v = jnp.ones((9,), jnp.float64), jnp.ones((21,), jnp.float64)
    np.testing.assert_array_equal(rows.mv(v), clean.mv(v))
    np.testing.assert_array_equal(rows.rmv(y), clean.rmv(y))
    np.testing.assert_array_equal(rows.gram(), clean.gram())
    np.testing.assert_array_equal(rows.block(0, 9), clean.block(0, 9))


_pair = jax.jit(lambda rows, v, y: (y @ rows.mv(v), rows.rmv(y) @ v))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31), scale=st.floats(1e-6, 1e6))
def test_mv_and_rmv_are_transposes_of_each_other(seed, scale):
    key, v_key, y_key = jr.split(jr.key(seed), 3)
    _, factored, _, _ = network_rows(key, 9)
    rows = factored.scale(jnp.full((9,), scale, jnp.float64))
    v = jr.normal(v_key, (21,), jnp.float64)
    y = jr.normal(y_key, (9,), jnp.float64)
    left, right = _pair(rows, v, y)
    bound = np.linalg.norm(rows.block(0, 9)) * np.linalg.norm(v) * np.linalg.norm(y)
    assert abs(left - right) <= 1e-13 * bound


def test_a_sample_of_rows_has_the_trace_of_all(getkey):
    """Exactly: they are drawn by their squared length."""
    rows = DenseRows(decaying_rows(getkey(), 40, 6))
    sample = row_sample(rows, 5, seed=0)
    assert sample.num_rows == 5
    np.testing.assert_allclose(sample.squared_norm(), rows.squared_norm(), rtol=1e-12)


def test_the_estimated_trace_of_a_closed_function_is_near(getkey):
    rows, x = both("closed", getkey(), 64)
    # Hutchinson with 32 signs: the standard error is at most a quarter.
    np.testing.assert_allclose(rows.squared_norm(), (x**2).sum(), rtol=0.75)


def test_arrays_that_are_not_rows_are_refused():
    with pytest.raises(ValueError, match="reshape"):
        as_rows(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="floating-point"):
        as_rows(np.ones((2, 3), np.int32))


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Factor 0 has 5 rows"):
        FactoredRows([Factor(None, jnp.ones((5, 2)))], jnp.ones(4))
    with pytest.raises(ValueError, match="Factor 0 is float32"):
        FactoredRows([Factor(None, jnp.ones((4, 2), jnp.float32))], jnp.ones(4))
