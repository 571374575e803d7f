"""Means and their intervals, against the normal approximation."""

import numpy as np

from hyperirl.evaluation.intervals import interval, percentiles, picks


def test_the_interval_of_many_values_is_that_of_the_normal_approximation():
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    found = interval(values)
    half = 1.96 * values.std() / 20
    assert found["mean"] == values.mean() and found["n"] == 400
    # 2000 bootstrap draws know the quantiles to a few percent.
    assert np.isclose(values.mean() - found["low"], half, rtol=0.15)
    assert np.isclose(found["high"] - values.mean(), half, rtol=0.15)


def test_seeds_that_differ_widen_the_interval():
    """Many episodes of two seeds do not make up for having two seeds only."""
    episodes = np.random.default_rng(0).normal(size=(2, 100))
    same = interval(episodes)
    apart = interval(episodes + np.array([[-5.0], [5.0]]))
    width = lambda found: found["high"] - found["low"]
    assert np.isclose(same["mean"], apart["mean"])
    assert width(apart) > 9 > 1 > width(same)


def test_a_single_value_has_no_interval():
    assert interval([2.0]) == {"mean": 2.0, "low": None, "high": None, "n": 1}


def test_percentiles_leave_out_what_is_undefined():
    draws = np.append(np.linspace(0, 1, 1001), np.nan)
    found = percentiles(0.4, draws, 7)
    assert found["mean"] == 0.4 and found["n"] == 7
    assert np.isclose(found["low"], 0.025) and np.isclose(found["high"], 0.975)
    assert percentiles(float("nan"), draws, 7)["mean"] is None


def test_bootstrap_samples_repeat_and_stay_in_range():
    rows = picks(10, 50)
    assert rows.shape == (50, 10) and rows.min() == 0 and rows.max() == 9
    assert len(set(rows[0])) < 10
