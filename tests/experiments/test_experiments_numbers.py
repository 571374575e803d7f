import math

import numpy as np
import pytest
import scipy.stats

from hyperirl.experiments.numbers import last_five, over_seeds, shown


@pytest.mark.parametrize("count", [2, 3, 5, 11, 12, 30])
def test_intervals_are_students(count):
    values = np.random.default_rng(0).normal(3, 2, count)
    found = over_seeds(values)
    low, high = scipy.stats.t.interval(
        0.95, count - 1, values.mean(), scipy.stats.sem(values)
    )
    assert found["n"] == count
    # The points of Student's t are written with four digits.
    np.testing.assert_allclose([found["low"], found["high"]], [low, high], rtol=1e-3)


def test_one_value_has_no_interval_and_unknown_ones_do_not_count():
    found = over_seeds([None, 2.0, math.nan])
    assert (found["mean"], found["low"], found["n"]) == (2.0, None, 1)
    assert over_seeds([])["mean"] is None
    assert shown(over_seeds([])) == "–"


def test_the_last_five_steps():
    assert last_five([100, 1, 2, 3, None, 4, 5]) == 3
    assert last_five([]) is None
