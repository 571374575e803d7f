import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl.report.numbers import duration, linear_ticks, log_ticks, text, thin


@pytest.mark.parametrize(
    "value, expected",
    [
        (0.0, "0"),
        (171.0, "171"),
        (0.9714, "0.9714"),
        (-12.3456, "−12.35"),
        (99999.0, "99999"),
        (123456.0, "1.23e5"),
        (1e-7, "1e−7"),
        (-2.5e-4, "−2.5e−4"),
        (math.nan, "–"),
    ],
)
def test_numbers_are_short(value, expected):
    assert text(value) == expected


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (2.5, "2.5 s"),
        (60.0, "1 min 0 s"),
        (80.0, "1 min 20 s"),
        (7500.0, "2 h 5 min"),
        (math.nan, "–"),
    ],
)
def test_durations_are_readable(seconds, expected):
    assert duration(seconds) == expected


def test_ticks_are_round():
    assert linear_ticks(0.0, 63.0, 6) == [0, 20, 40, 60]
    assert linear_ticks(-0.3, 0.3, 6) == pytest.approx(
        [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3]
    )
    assert log_ticks(1e-8, 1e-2, 6) == pytest.approx([10.0**e for e in range(-8, -1)])
    assert log_ticks(1.5, 15.0, 6) == [2, 5, 10]


_NUMBERS = st.floats(-1e9, 1e9)


@settings(deadline=None)
@given(low=_NUMBERS, share=st.floats(1e-6, 10))
def test_ticks_are_few_and_within_the_limits(low, share):
    high = low + share * max(1.0, abs(low))
    ticks = linear_ticks(low, high)
    room = 1e-6 * (high - low)
    assert 1 <= len(ticks) <= 8
    assert all(low - room <= tick <= high + room for tick in ticks)


def test_thinning_keeps_ends_and_extremes():
    x = np.arange(1000.0)
    y = np.sin(x / 50)
    y[333], y[777] = 9.0, -9.0
    thin_x, thin_y = thin(x, y, 50)
    assert len(thin_x) <= 52
    assert (thin_x[0], thin_x[-1]) == (0, 999)
    assert (thin_y.max(), thin_y.min()) == (9.0, -9.0)
    assert np.all(np.diff(thin_x) > 0)
