"""Tables of CSV: what is understood, the round trip, and what is refused."""

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, from_flat, reading, to_flat

TABLE = """episode,step,observation_0,observation_1,action,reward,terminated,truncated
a,0,0.5,1,0,1.5,0,0
a,1,0.25,2,1,2.5,true,False
a,2,0.125,3,,,,
b,0,7,8,1,0,0,1
"""


def load(tmp_path, text, name="demos.csv"):
    path = tmp_path / name
    path.write_text(text)
    return demos.load(path)


def test_a_table_is_cut_into_episodes(tmp_path):
    loaded = load(tmp_path, TABLE)
    batch = loaded.trajectories
    assert batch.lengths.tolist() == [2, 1]
    assert batch.observations[0].tolist() == [[0.5, 1], [0.25, 2], [0.125, 3]]
    assert batch.observations[1, :2].tolist() == [[7, 8], [7, 8]]
    assert batch.actions.tolist() == [[0, 1], [1, 0]]
    assert batch.rewards.tolist() == [[1.5, 2.5], [0, 0]]
    assert batch.terminated.tolist() == [True, False]
    assert loaded.provenance.missing == ("last observations",)


def test_columns_may_stand_in_any_order_and_be_fewer(tmp_path):
    text = "\ufeffaction_1, action_0,observation_0\r\n3,1e-3,5\r\n\r\n4,2,6\r\n"
    loaded = load(tmp_path, text, "anything")
    np.testing.assert_array_equal(
        loaded.trajectories.actions[0], np.float32([[1e-3, 3], [2, 4]])
    )
    assert loaded.trajectories.rewards is None
    assert loaded.provenance.missing == ("last observations", "terminations")


def test_ten_observations_stand_in_the_order_of_their_numbers(tmp_path):
    names = [f"observation_{i}" for i in range(11)]
    row = [str(i) for i in range(11)]
    loaded = load(tmp_path, f"{','.join(names)},action\n{','.join(row)},0\n")
    assert loaded.trajectories.observations[0, 0].tolist() == list(range(11))


def test_steps_that_were_left_out_are_noticed(tmp_path):
    rows = "".join(f"{5 * i},0.5,1,0\n" for i in range(3))
    loaded = load(tmp_path, f"step,observation_0,action,terminated\n{rows}")
    assert loaded.provenance.missing == ("last observations", "steps")


def test_a_folder_holds_an_episode_in_each_file(tmp_path):
    for number in (10, 9):
        text = f"observation_0,action\n{number},0\n{number + 0.5},1\n"
        (tmp_path / f"run{number}.csv").write_text(text)
    batch = demos.load(tmp_path).trajectories
    assert batch.observations[:, 0, 0].tolist() == [9, 10]
    (tmp_path / "run11.csv").write_text("observation_0,action,reward\n1,0,1\n")
    with pytest.raises(DemosError, match="run11.csv has other columns than run9.csv"):
        demos.load(tmp_path)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("kept", [("rewards", "expert_log_probs"), ()])
def test_the_round_trip_keeps_every_bit(tmp_path, flat, kept, vectors):
    generator = np.random.default_rng(0)
    for name in {"rewards", "expert_log_probs"} - {*kept}:
        del flat[name]
    bits = generator.integers(0, 2**32, 10 * 40, dtype=np.uint32).view(np.float32)
    flat["observations"] = np.where(np.isfinite(bits), bits, 0).reshape(10, 40)
    if vectors:
        flat["actions"] = generator.normal(size=(7, 2)).astype(np.float32)
    demos.save(from_flat(flat), tmp_path / "a.csv")
    loaded = demos.load(tmp_path / "a.csv")
    found = to_flat(loaded)
    assert loaded.provenance.missing == () and set(found) == set(flat)
    for name, array in flat.items():
        assert found[name].tobytes() == array.tobytes()


def refused(tmp_path, text, message):
    with pytest.raises(DemosError, match=message) as caught:
        load(tmp_path, text)
    assert "demos.csv" in str(caught.value) and "\n" not in str(caught.value)


HEADER = "episode,step,observation_0,action,terminated\n"
BAD_TABLES = {
    "nothing": ("", "needs columns"),
    "no rows": (HEADER, "no rows"),
    "an unknown column": ("observation_0,action,rewards\n", "unknown column `rewards`"),
    "a column twice": ("observation_0,action,action\n", "twice"),
    "no actions": ("observation_0,reward\n1,1\n", "needs columns"),
    "both kinds of actions": ("observation_0,action,action_0\n", "needs columns"),
    "no observations": ("action\n1\n", "needs columns"),
    "a number left out": ("observation_0,observation_2,action\n", "not numbered"),
    "a ragged line": (HEADER + "a,0,1\n", "Line 2 of demos.csv has 3 entries"),
    "text": (HEADER + "a,0,left,1,0\n", "'left' in line 2 of demos.csv is no number"),
    "a formula": (HEADER + "a,0,__import__('os'),1,0\n", "is no number"),
    "an empty observation": (HEADER + "a,0,,1,0\n", "NaN"),
    "an infinite observation": (HEADER + "a,0,inf,1,0\n", "NaN, infinite"),
    "fractions as choices": (HEADER + "a,0,1,0.5,0\n", "is called `action_0`"),
    "an action left out": (HEADER + "a,0,1,1,0\na,1,1,,0\na,2,1,1,0\n", "whole number"),
    "steps back": (HEADER + "a,1,1,1,0\na,0,1,1,0\n", "not in order"),
    "mixed episodes": (HEADER + "a,0,1,1,0\nb,0,1,1,0\na,1,1,1,0\n", "stand together"),
    "an early end": (HEADER + "a,0,1,1,1\na,1,1,1,0\n", "true at its last action only"),
    "an odd end": (HEADER + "a,0,1,1,2\n", "must be true or false"),
    "no action at all": (HEADER + "a,0,1,,\n", "length 0"),
    "a quote that never ends": (HEADER + 'a,0,"1,1,0\n', "damaged"),
    "Parquet": ("PAR1 and so on", "is Parquet"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_get_one_sentence(tmp_path, case):
    text, message = BAD_TABLES[case]
    refused(tmp_path, text, message)


def test_bytes_that_are_no_text_get_one_sentence(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DemosError, match="damaged"):
        demos.load(tmp_path / "a.csv")


def test_a_file_in_no_known_format_gets_one_sentence(tmp_path):
    (tmp_path / "image.png").write_bytes(b"\x89PNG and so on")
    with pytest.raises(DemosError, match="not in a format that is known") as caught:
        demos.load(tmp_path / "image.png")
    assert "image.png" in str(caught.value)
    with pytest.raises(DemosError, match="not in a format that is known"):
        demos.load(tmp_path)
    with pytest.raises(DemosError, match="no such file"):
        demos.load(tmp_path / "absent.csv")


def test_what_would_fill_the_memory_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 100)
    refused(tmp_path, TABLE, "GB of memory")


def test_demos_are_checked_against_the_environment_that_is_given(tmp_path):
    from hyperirl.environments import CartPole

    (tmp_path / "a.csv").write_text(TABLE)
    with pytest.raises(DemosError, match="observations of 2 numbers, and CartPole has"):
        demos.load(tmp_path / "a.csv", environment=CartPole())
