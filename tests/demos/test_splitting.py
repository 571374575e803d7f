import numpy as np
import pytest

from hyperirl.demos.splitting import deal_out
from hyperirl.trajectories import deal


@pytest.mark.parametrize("total", [3, 20, 101])
def test_every_episode_is_in_one_part(total):
    for seeds in ((0, None), (3, 5), (5, 3)):
        dealt = deal_out(total, *seeds)
        assert all(len(part) for part in dealt)
        np.testing.assert_array_equal(np.sort(np.concatenate(dealt)), np.arange(total))


def test_a_seed_alone_decides_everything():
    for test_seed in (None, 7):
        for part, expected in zip(
            deal_out(60, 7, test_seed), deal(60, (0.7, 0.15, 0.15), seed=7), strict=True
        ):
            np.testing.assert_array_equal(part, expected)


def test_the_test_seed_alone_decides_what_is_evaluated_on():
    one, two = deal_out(60, 1, 9), deal_out(60, 2, 9)
    np.testing.assert_array_equal(one[2], two[2])
    np.testing.assert_array_equal(one[2], deal_out(60, 9)[2])
    assert not set(one[0]) == set(two[0])
    assert [len(part) for part in one] == [42, 9, 9]
