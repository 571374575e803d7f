"""A training in chunks is the whole training."""

import itertools

import numpy as np
import pytest

from hyperirl.inner import chunks


@pytest.mark.parametrize("num_updates, num_chunks", [(150, 20), (7, 3), (3, 5), (1, 1)])
def test_chunks_make_up_the_training_and_follow_each_other(num_updates, num_chunks):
    parts = chunks(num_updates, num_chunks)
    assert len(parts) == num_chunks
    assert sum(part.num_updates for part in parts) == num_updates
    assert (parts[0].start, parts[-1].end) == (0.0, 1.0)
    for part, after in itertools.pairwise(parts):
        assert part.end == after.start
    for part in parts:
        share = part.end - part.start
        np.testing.assert_allclose(share * num_updates, part.num_updates, atol=1e-9)
        assert abs(part.num_updates - num_updates / num_chunks) < 1


def test_a_training_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one update and one chunk, got"):
        chunks(0, 3)
    with pytest.raises(ValueError, match="num_chunks=0"):
        chunks(3, 0)
