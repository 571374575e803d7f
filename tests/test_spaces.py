import pytest

from hyperirl.spaces import Box, Discrete


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
