"""Who gets which demonstrations is settled: old runs are judged on what they missed."""

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import split
from hyperirl.demos.splitting import split_demos


@pytest.fixture(scope="module")
def bundled():
    return demos.load("lqr")


def test_most_episodes_are_for_learning(bundled):
    parts = split_demos(bundled, 0)
    count = bundled.num_episodes
    shares = [part.num_episodes / count for part in parts]
    np.testing.assert_allclose(shares, (0.7, 0.15, 0.15), atol=1 / count)


def test_what_is_dealt_second_selects_and_the_rest_judges(bundled):
    """Exchanged, a run would be judged on what it was selected by."""
    dealt = split(bundled, (0.7, 0.15, 0.15), seed=3)
    parts = split_demos(bundled, 3)
    hashes = [demos.content_hash(part) for part in dealt]
    assert demos.content_hash(parts.train) == hashes[0]
    assert demos.content_hash(parts.valid) == hashes[1]
    assert demos.content_hash(parts.test) == hashes[2]
    assert len(set(hashes)) == 3
