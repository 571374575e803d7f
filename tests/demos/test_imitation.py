"""What the library `imitation` wrote, without that library."""

import json
import pathlib
import pickle
import shutil

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, arrow, reading, to_flat

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("name", ["imitation-cartpole", "imitation-pendulum"])
def test_a_folder_is_read_as_imitation_reads_it(name):
    """Made, and read back, by the real library: scripts/make_imitation_fixture.py."""
    expected = json.loads((FIXTURES / f"{name}.json").read_text())
    found = to_flat(demos.load(FIXTURES / name))
    joined = lambda field: np.concatenate([np.asarray(e[field]) for e in expected])
    np.testing.assert_array_equal(found["observations"], np.float32(joined("obs")))
    np.testing.assert_array_equal(found["actions"], np.float32(joined("acts")))
    assert found["lengths"].tolist() == [len(e["acts"]) for e in expected]
    assert ("rewards" in found) == ("rews" in expected[0])
    if "rewards" in found:
        np.testing.assert_array_equal(found["rewards"], np.float32(joined("rews")))


def test_the_end_by_the_time_limit_is_no_termination():
    """`terminal` is true in both fixtures; Pendulum never terminates."""
    pendulum = demos.load(FIXTURES / "imitation-pendulum")
    assert not pendulum.trajectories.terminated.any()
    cartpole = demos.load(FIXTURES / "imitation-cartpole")
    assert cartpole.trajectories.terminated.all()
    for loaded in (pendulum, cartpole):
        assert loaded.provenance.missing == ("terminations",)


@pytest.fixture
def folder(tmp_path):
    return pathlib.Path(
        shutil.copytree(FIXTURES / "imitation-cartpole", tmp_path / "a")
    )


def refused(path, message):
    with pytest.raises(DemosError, match=message) as caught:
        demos.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


BAD_STATES = {
    "no JSON": ("{", "state.json is not JSON"),
    "deep": ("[" * 90000, "state.json is not JSON"),
    "a list": ("[1]", "not a dictionary"),
    "no files": ("{}", "names no data files"),
    "a file elsewhere": (
        '{"_data_files": [{"filename": "../other.arrow"}]}',
        "not in the folder",
    ),
    "an absolute path": (
        '{"_data_files": [{"filename": "/etc/passwd"}]}',
        "not in the folder",
    ),
    "no name": ('{"_data_files": [3]}', "not in the folder"),
    "an absent file": ('{"_data_files": [{"filename": "b.arrow"}]}', "no file b.arrow"),
    "another file": ('{"_data_files": [{"filename": "state.json"}]}', "damaged"),
}


@pytest.mark.parametrize("case", BAD_STATES)
def test_bad_folders_get_one_sentence(folder, case):
    text, message = BAD_STATES[case]
    (folder / "state.json").write_text(text)
    refused(folder, message)


def test_a_stream_cut_anywhere_is_refused(folder):
    file = folder / "data-00000-of-00001.arrow"
    whole = file.read_bytes()
    for size in range(0, len(whole) - 8, 97):  # The last 8 bytes only say: the end.
        file.write_bytes(whole[:size])
        with pytest.raises(DemosError):
            demos.load(folder)


def test_flipped_bytes_never_crash(folder):
    file = folder / "data-00000-of-00001.arrow"
    whole, generator = file.read_bytes(), np.random.default_rng(0)
    refusals = 0
    for position in generator.permutation(len(whole))[:300]:
        damaged = bytearray(whole)
        damaged[position] ^= generator.integers(1, 256)
        file.write_bytes(damaged)
        try:
            demos.load(folder)
        except DemosError as error:
            assert "\n" not in str(error)
            refusals += 1
    assert refusals > 10


def test_endless_columns_are_refused(folder, monkeypatch):
    monkeypatch.setattr(arrow, "_MAX_FIELDS", 3)
    refused(folder, "more than 3 columns")


def test_what_would_fill_the_memory_is_refused_unread(folder, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 100)
    refused(folder, "GB of memory")


class Bomb:
    exploded = False

    def __setstate__(self, state):
        Bomb.exploded = True

    def __reduce__(self):
        return (Bomb, (), {"armed": True})


@pytest.fixture
def old():
    """Two episodes of 3 and 2 steps, laid out as imitation 0.3 did."""
    generator = np.random.default_rng(0)
    return {
        "obs": generator.normal(size=(7, 4)).astype(np.float32),
        "acts": np.array([0, 1, 1, 0, 1]),
        "infos": np.array([Bomb()] * 5, object),
        "terminal": np.array([True, True]),
        "indices": np.array([3]),
        "rews": np.ones(5),
    }


def test_an_old_archive_is_cut_at_its_indices(tmp_path, old):
    np.savez(tmp_path / "old.npz", **old)
    batch = demos.load(tmp_path / "old.npz").trajectories
    assert batch.lengths.tolist() == [3, 2]
    np.testing.assert_array_equal(batch.observations[0], old["obs"][:4])
    np.testing.assert_array_equal(batch.observations[1, :3], old["obs"][4:])
    assert batch.actions[1, :2].tolist() == [0, 1]
    assert batch.terminated.tolist() == [True, True]


def test_infos_are_never_loaded(tmp_path, old):
    pickle.loads(pickle.dumps(Bomb()))
    assert Bomb.exploded  # It is a live one.
    Bomb.exploded = False
    np.savez(tmp_path / "old.npz", **old)
    demos.load(tmp_path / "old.npz")
    assert not Bomb.exploded
    old["acts"] = old["infos"]
    np.savez(tmp_path / "bad.npz", **old)
    refused(tmp_path / "bad.npz", "Python objects")
    assert not Bomb.exploded


def test_infos_are_not_even_unpacked(tmp_path, old, monkeypatch):
    np.savez_compressed(tmp_path / "old.npz", **old | {"infos": np.zeros(10_000)})
    monkeypatch.setattr(reading, "MAX_BYTES", 10_000)
    assert demos.load(tmp_path / "old.npz").num_episodes == 2


BAD_ARRAYS = {
    "too few flags": ({"terminal": np.array([True])}, "does not cut 5 steps"),
    "whole numbers as flags": ({"terminal": np.array([1, 1])}, "not true or false"),
    "cuts out of order": (
        {"indices": np.array([3, 1]), "terminal": np.ones(3, bool)},
        "does not cut",
    ),
    "a cut after the end": ({"indices": np.array([9])}, "does not cut"),
    "fractional cuts": ({"indices": np.array([3.0])}, "whole numbers"),
    "too few observations": ({"obs": np.zeros((6, 4))}, "`obs` has 6 rows"),
    "NaN": ({"obs": np.full((7, 4), np.nan)}, "NaN"),
    "too few rewards": ({"rews": np.ones(4)}, "`rewards` of episode 1 has shape"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_archives_get_one_sentence(tmp_path, old, case):
    changes, message = BAD_ARRAYS[case]
    np.savez(tmp_path / "bad.npz", **old | changes)
    refused(tmp_path / "bad.npz", message)


def test_an_archive_without_rewards_or_ends(tmp_path, old):
    del old["rews"]
    np.savez(tmp_path / "old.npz", **old)
    assert demos.load(tmp_path / "old.npz").trajectories.rewards is None
    del old["terminal"]
    np.savez(tmp_path / "bad.npz", **old)
    refused(tmp_path / "bad.npz", "no column `terminal`")
