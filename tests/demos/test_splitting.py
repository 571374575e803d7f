"""Who learns from which episode, down to a single one."""

import equinox as eqx
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, from_flat, to_flat
from hyperirl.demos.splitting import (
    deal_out,
    segments,
    split_demos,
    splits_by_time,
)
from hyperirl.trajectories import deal


def steps(*lengths):
    """Episodes in which everything tells the step it belongs to."""
    total = sum(lengths)
    starts = np.cumsum([0, *lengths[:-1]])
    seen = [np.arange(a, a + n + 1.0) for a, n in zip(starts, lengths, strict=True)]
    return from_flat(
        {
            "observations": np.concatenate(seen)[:, None],
            "actions": np.arange(total),
            "lengths": np.array(lengths),
            "terminated": np.ones(len(lengths), bool),
            "rewards": np.arange(total, dtype=np.float32),
            "expert_log_probs": -np.arange(total, dtype=np.float32),
        }
    )


def test_three_episodes_are_dealt_as_ever():
    given = steps(5, 6, 7)
    dealt = demos.split(given, (0.7, 0.15, 0.15), seed=3)
    for part, expected in zip(split_demos(given, 3), dealt, strict=True):
        assert eqx.tree_equal(part.trajectories, expected.trajectories)
    assert not splits_by_time(given) and splits_by_time(given[:2])


@pytest.mark.parametrize("lengths", [(200,), (150, 50), (3,), (1, 2), (1, 1000), (19,)])
def test_few_episodes_are_split_by_time(lengths):
    """Every step is in one part, with what was seen before and after it."""
    given = steps(*lengths)
    parts = split_demos(given, 0)
    taken = []
    for part in parts:
        flat, batch = to_flat(part), part.trajectories
        taken += flat["actions"].tolist()
        np.testing.assert_array_equal(flat["rewards"], flat["actions"])
        np.testing.assert_array_equal(flat["expert_log_probs"], -flat["rewards"])
        now = np.asarray(batch.observations[:, :-1, 0])[np.asarray(batch.mask)]
        after = np.asarray(batch.observations[:, 1:, 0])[np.asarray(batch.mask)]
        np.testing.assert_array_equal(now, flat["actions"])
        np.testing.assert_array_equal(after, flat["actions"] + 1)
    assert sorted(taken) == list(range(sum(lengths)))


def test_the_parts_are_a_share_of_the_time():
    parts = split_demos(steps(200), 0)
    assert [int(part.trajectories.lengths.sum()) for part in parts] == [140, 30, 30]


def test_only_the_last_segment_is_an_end():
    cut = segments(steps(10, 10), 4)
    assert cut.trajectories.lengths.tolist() == [5, 5, 5, 5]
    assert cut.trajectories.terminated.tolist() == [False, True, False, True]


def test_two_steps_are_too_few():
    with pytest.raises(DemosError, match="2 steps are too few"):
        split_demos(steps(1, 1), 0)


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
