"""Lists of arrays: what is made up when it was not recorded, and what is refused."""

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, Episode, from_arrays, from_episodes

EPISODES = {
    "observations": [np.zeros((3, 4)), np.ones((2, 4))],
    "actions": [np.array([0, 1]), np.array([1])],
    "terminated": [True, False],
    "rewards": [np.ones(2), np.ones(1)],
}


def test_episodes_can_be_given_one_by_one():
    made = from_arrays(**EPISODES)
    assert made.trajectories.lengths.tolist() == [2, 1]
    assert made.trajectories.rewards.tolist() == [[1, 1], [1, 0]]
    assert made.trajectories.terminated.tolist() == [True, False]
    assert made.expert_nll is None and made.provenance.missing == ()


def test_a_last_observation_that_is_missing_is_the_one_before():
    seen = [np.array([[0.0], [1.0]]), np.array([[5.0], [6.0]])]
    made = from_arrays(seen, [np.array([0, 1]), np.array([1])], terminated=[True, True])
    assert made.trajectories.observations[0, :, 0].tolist() == [0, 1, 1]
    assert made.trajectories.observations[1, :2, 0].tolist() == [5, 6]
    assert made.provenance.missing == ("last observations",)


def test_without_terminations_all_episodes_count_as_cut_off():
    made = from_arrays(EPISODES["observations"], EPISODES["actions"])
    assert not made.trajectories.terminated.any()
    assert made.provenance.missing == ("terminations",)


def test_steps_that_were_left_out_are_remembered():
    rows = np.zeros((4, 1))
    numbers = np.array([0, 5, 10, 15])
    gaps = Episode(rows, np.zeros(3, int), terminated=True, steps=numbers)
    assert from_episodes([gaps]).provenance.missing == ("steps",)
    whole = Episode(rows, np.zeros(3, int), terminated=True, steps=np.arange(7, 11))
    assert from_episodes([whole]).provenance.missing == ()


def test_what_is_missing_is_kept_in_the_file(tmp_path):
    made = from_arrays(EPISODES["observations"], EPISODES["actions"])
    demos.save(made, tmp_path / "a.npz")
    assert demos.load(tmp_path / "a.npz").provenance == made.provenance


def test_only_what_can_be_missing_is_said_to_be():
    with pytest.raises(DemosError, match="names 'wheels'; it may name last obs"):
        demos.Provenance(missing=("wheels",))
    with pytest.raises(DemosError, match="not a list"):
        demos.Provenance.from_json('{"format_version": 1, "missing": null}')


def test_provenance_without_anything_missing_is_written_as_ever():
    assert "missing" not in demos.Provenance().to_json()


def test_observations_of_any_shape_and_type_become_vectors():
    images = [np.arange(8, dtype=np.uint8).reshape(2, 2, 2)]
    made = from_arrays(images, [np.array([1])], terminated=[False])
    assert made.trajectories.observations.tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    numbers = [np.array([3, 4])]
    made = from_arrays(numbers, [np.array([1])], terminated=[False])
    assert made.trajectories.observations.tolist() == [[[3], [4]]]


BAD_EPISODES = {
    "none": (
        {"actions": [], "observations": [], "rewards": None, "terminated": None},
        "no episodes",
    ),
    "two observations too many": (
        {"observations": [np.zeros((4, 4)), np.ones((2, 4))]},
        r"`observations` of episode 0 has shape \(4, 4\), but 3 rows",
    ),
    "fewer rewards": ({"rewards": [np.ones(2)]}, "`rewards` has 1 episodes"),
    "fewer ends": ({"terminated": [True]}, "`terminated` has 1 episodes"),
    "shorter rewards": (
        {"rewards": [np.ones(1), np.ones(1)]},
        "`rewards` of episode 0 has shape",
    ),
    "other sizes": (
        {"observations": [np.zeros((3, 4)), np.ones((2, 5))]},
        "`observations` of episode 1 has rows of shape",
    ),
    "empty episode": (
        {
            "observations": [np.zeros((3, 4)), np.ones((1, 4))],
            "actions": [np.array([0, 1]), np.array([], int)],
            "rewards": None,
        },
        "Episode 1 has length 0",
    ),
    "scalar actions": ({"actions": [np.array(1), np.array([1])]}, "1 rows"),
    "scalar observations": (
        {"observations": [np.array(1.0), np.ones((2, 4))]},
        r"episode 0 has shape \(\)",
    ),
    "objects": (
        {"observations": [np.array([[None] * 4] * 3), np.ones((2, 4))]},
        "floating-point",
    ),
}


@pytest.mark.parametrize("case", BAD_EPISODES)
def test_bad_episodes_get_one_sentence(case):
    changes, message = BAD_EPISODES[case]
    with pytest.raises(DemosError, match=message) as caught:
        from_arrays(**EPISODES | changes)
    assert "\n" not in str(caught.value)


def test_rewards_of_some_episodes_only_are_refused():
    known = Episode(np.zeros((2, 1)), np.zeros(1, int), np.ones(1), True)
    unknown = Episode(np.zeros((2, 1)), np.zeros(1, int), None, True)
    with pytest.raises(DemosError, match="Only 1 of 2 episodes have rewards"):
        from_episodes([known, unknown])
