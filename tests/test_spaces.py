import math

import pytest

from hyperirl.spaces import Box, Discrete, uniform_entropy


def test_no_choice_at_all_is_refused():
    with pytest.raises(ValueError, match="got 0 actions"):
        Discrete(0)


@pytest.mark.parametrize("low, high", [(1.0, 1.0), (2.0, -2.0), (float("nan"), 1.0)])
def test_an_empty_box_is_refused(low, high):
    with pytest.raises(ValueError, match="`low` must be below `high`"):
        Box(1, low, high)


def test_a_box_without_numbers_is_refused():
    with pytest.raises(ValueError, match="at least one number"):
        Box(0)


@pytest.mark.parametrize(
    "space, expected",
    [
        (Discrete(4), math.log(4)),
        (Discrete(1), 0.0),
        (Box(3, -1.0, 2.0), 3 * math.log(3)),
        (Box(2, 0.0, 0.5), 2 * math.log(0.5)),
        (Box(2), 0.0),
        (Box(2, 0.0), 0.0),
    ],
    ids=str,
)
def test_the_entropy_of_the_uniform_policy_is_the_log_of_the_volume(space, expected):
    assert uniform_entropy(space) == pytest.approx(expected, rel=1e-12)
