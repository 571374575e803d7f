"""Sketches are data with a guarantee, however they were built."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from curvature_problems import (
    decaying_rows,
    exact,
    generator,
    relative_error,
    solved,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl.curvature import (
    SCFD,
    FrequentDirections,
    RobustFrequentDirections,
    Shrinkage,
    empty_sketch,
    sketch_rows,
)

ROWS, DIM, SIZE, BUFFER = 30, 8, 3, 5
seeds = st.integers(0, 2**31)
scales = st.sampled_from([1e-12, 1e-3, 1.0, 1e3, 1e12])
decays = st.sampled_from([0.2, 0.7, 1.0])
rules = st.sampled_from(list(Shrinkage))
few = settings(deadline=None, max_examples=25)


def make_rows(seed, scale, decay, num_rows=ROWS):
    rows = np.asarray(decaying_rows(jr.key(seed), num_rows, DIM, decay=decay))
    return scale * rows


def stream(blocks, rule=Shrinkage.NEXT):
    sketch = empty_sketch(DIM, size=SIZE, buffer=BUFFER, rule=rule, dtype=jnp.float64)
    for block in blocks:
        sketch = append(sketch, block)
    return sketch


append = jax.jit(lambda sketch, block: sketch.append(block))
merge = jax.jit(lambda a, b: a.merge(b))
solve = jax.jit(
    lambda sketch, damping, g, compensation=1.0: sketch.solve(
        damping, g, compensation=compensation
    ),
    static_argnums=3,
)


def assert_guarantee(sketch, rows):
    """`S^T S <= X^T X <= S^T S + Delta I`."""
    stacked = np.asarray(sketch.stacked())
    gap = rows.T @ rows - stacked.T @ stacked
    low, high = np.linalg.eigvalsh(gap)[[0, -1]]
    rounding = 1e-12 * (rows**2).sum()
    assert low >= -rounding
    assert high <= float(sketch.shrinkage) + rounding


@few
@given(seed=seeds, scale=scales, decay=decays, rule=rules)
def test_the_sketch_brackets_the_normal_matrix(seed, scale, decay, rule):
    rows = make_rows(seed, scale, decay)
    assert_guarantee(stream(np.split(rows, 6), rule), rows)


@few
@given(seed=seeds, decay=decays, length=st.sampled_from([1, 2, 3, 15]))
def test_blocks_of_any_size_give_the_same_sketch(seed, decay, length):
    rows = make_rows(seed, 1.0, decay)
    whole = stream(np.split(rows, 6))
    parts = stream(np.split(rows, ROWS // length))
    gram = lambda sketch: np.asarray(sketch.stacked().T @ sketch.stacked())
    np.testing.assert_allclose(gram(parts), gram(whole), atol=1e-11)
    np.testing.assert_allclose(parts.shrinkage, whole.shrinkage, rtol=1e-9)
    assert parts.rows_seen == whole.rows_seen == ROWS


@few
@given(seed=seeds, scale=scales, decay=decays, cut=st.sampled_from([5, 10, 25]))
def test_a_merged_sketch_has_the_guarantee_of_all_its_rows(seed, scale, decay, cut):
    rows = make_rows(seed, scale, decay)
    parts = [stream(np.split(x, len(x) // 5)) for x in (rows[:cut], rows[cut:])]
    merged = merge(*parts)
    assert_guarantee(merged, rows)
    assert merged.rows_seen == ROWS


@few
@given(seed=seeds, decay=decays)
def test_merging_in_any_order_stays_within_the_guarantee(seed, decay):
    rows = make_rows(seed, 1.0, decay)
    a, b, c = (stream(np.split(part, 2)) for part in np.split(rows, 3))
    assert_guarantee(merge(merge(a, b), c), rows)
    assert_guarantee(merge(a, merge(b, c)), rows)


@few
@given(seed=seeds, decay=decays, damping=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]))
def test_the_error_stays_below_the_certificate(seed, decay, damping):
    rows = make_rows(seed, 1.0, decay)
    g = generator(jr.key(seed)).normal(size=DIM)
    solution = solve(stream(np.split(rows, 6)), damping, jnp.asarray(g))
    error = relative_error(solution.v, exact(rows, g, damping))
    assert error <= float(solution.info.certificate) + 1e-9


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@few
@given(seed=seeds, decay=decays, damping=st.sampled_from([1e-2, 1.0]))
def test_errors_of_all_compensations_stay_below(compensation, seed, decay, damping):
    rows = make_rows(seed, 1.0, decay)
    g = generator(jr.key(seed)).normal(size=DIM)
    sketch = stream(np.split(rows, 6))
    solution = solve(sketch, damping, jnp.asarray(g), compensation)
    error = relative_error(solution.v, exact(rows, g, damping))
    assert error <= float(solution.info.certificate) + 1e-9


@few
@given(seed=seeds, decay=decays, damping=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_the_sketched_inverse_is_symmetric_positive_and_bounded(seed, decay, damping):
    """`0 < u.Au <= u.u / damping` and `u.Av == v.Au`."""
    sketch = stream(np.split(make_rows(seed, 1.0, decay), 6))
    u, v = jnp.asarray(generator(jr.key(seed)).normal(size=(2, DIM)))
    a_u, a_v = solve(sketch, damping, u).v, solve(sketch, damping, v).v
    bound = float(u @ u) / damping
    assert 0 < float(u @ a_u) <= bound * (1 + 1e-9)
    assert abs(float(u @ a_v - v @ a_u)) <= 1e-11 / damping * np.sqrt(
        float((u @ u) * (v @ v))
    )


def test_one_sketch_serves_every_damping(getkey):
    rows = decaying_rows(getkey(), ROWS, DIM)
    g = jr.normal(getkey(), (DIM,), jnp.float64)
    sketch = sketch_rows(rows, size=SIZE, buffer=BUFFER)
    for damping in (1e-3, 1.0):
        solver = SCFD(damping=damping, size=SIZE, buffer=BUFFER)
        expected = solved(solver, rows, g).v
        np.testing.assert_allclose(solve(sketch, damping, g).v, expected, rtol=1e-10)


def test_float32_sketches_keep_the_guarantee_up_to_their_rounding(getkey):
    rows = decaying_rows(getkey(), 2000, 20, decay=0.5, dtype=jnp.float32)
    sketch = sketch_rows(rows, size=12, buffer=16)
    x, s = np.asarray(rows, np.float64), np.asarray(sketch.stacked(), np.float64)
    low, high = np.linalg.eigvalsh(x.T @ x - s.T @ s)[[0, -1]]
    assert low >= -float(sketch.rounding)
    assert high <= float(sketch.shrinkage + sketch.rounding)
    assert float(sketch.rounding) < 1e-3 * (x**2).sum()


def test_a_merged_sketch_keeps_the_rounding_of_both(getkey):
    rows = decaying_rows(getkey(), 400, 20, decay=0.5, dtype=jnp.float32)
    a, b = (sketch_rows(part, size=12, buffer=16) for part in (rows[:150], rows[150:]))
    merged = merge(a, b)
    assert min(a.rounding, b.rounding) > 0
    assert merged.rounding > a.rounding + b.rounding


def test_rows_that_are_not_finite_never_enter(getkey):
    rows = np.array(decaying_rows(getkey(), ROWS, DIM))
    clean = rows.copy()
    rows[3], rows[17] = np.nan, np.inf
    clean[[3, 17]] = 0.0
    sketch = stream(np.split(rows, 6))
    expected = stream(np.split(clean, 6))
    assert (int(sketch.rows_seen), int(sketch.rows_refused)) == (ROWS, 2)
    np.testing.assert_array_equal(sketch.stacked(), expected.stacked())


def test_sketches_of_different_make_do_not_merge():
    make = functools.partial(empty_sketch, DIM, buffer=BUFFER)
    with pytest.raises(ValueError, match="same settings"):
        make(size=3).merge(make(size=4))


def test_a_sketch_of_no_rows_to_keep_is_refused():
    with pytest.raises(ValueError, match="`size` must be at least 1, got 0"):
        empty_sketch(DIM, size=0)


@pytest.mark.parametrize(
    ("size", "dim", "length"),
    [(2, 500, 16), (32, 500, 64), (96, 500, 128), (200, 500, 200), (32, 100_000, 32)],
)
def test_the_buffer_suits_the_sketch_unless_it_is_chosen(size, dim, length):
    """Twice its size, within limits: more is slower for small sketches."""
    assert empty_sketch(dim, size=size).buffer.shape == (length, dim)
    assert empty_sketch(dim, size=size, buffer=7).buffer.shape == (7, dim)


@pytest.mark.parametrize(
    "solver, share",
    [(FrequentDirections, 0.0), (RobustFrequentDirections, 0.5), (SCFD, 1.0)],
)
def test_solvers_differ_in_how_much_of_the_shrinkage_they_give_back(solver, share):
    rows = decaying_rows(jr.key(0), 40, 12, decay=0.9)
    sketch = sketch_rows(rows, size=4, buffer=4)
    kept = np.asarray(sketch.stacked(), np.float64)
    assert float(sketch.shrinkage) > 0.1
    matrix = kept.T @ kept + (0.05 + share * float(sketch.shrinkage)) * np.eye(12)
    g = jnp.arange(1.0, 13.0)
    found = solved(solver(damping=0.05, size=4, buffer=4), rows, g).v
    np.testing.assert_allclose(found, np.linalg.solve(matrix, g), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_take_the_type_of_the_sketch(dtype):
    """Also those that only overflow there: they are refused, as any others."""
    rows = np.round(100 * make_rows(0, 1.0, 0.7)).astype(dtype)
    empty = empty_sketch(DIM, size=SIZE, buffer=BUFFER)
    ours, theirs = append(empty, rows), append(empty, rows.astype(np.float32))
    assert ours.rows.dtype == ours.buffer.dtype == jnp.float32
    np.testing.assert_array_equal(ours.stacked(), theirs.stacked())
    huge = append(empty, np.full((2, DIM), 1e200))
    assert huge.rows_refused == 2 and not huge.stacked().any()
