"""Files: the round trip, and everything that can be wrong with one."""

import dataclasses
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, from_flat, reading, to_flat


@pytest.fixture
def made(flat, provenance):
    return from_flat(flat, provenance)


@pytest.fixture
def path(tmp_path, made):
    path = tmp_path / "demos.npz"
    demos.save(made, path)
    return path


def metadata(**fields):
    text = json.dumps({"format_version": 1} | fields)
    return np.frombuffer(text.encode(), np.uint8)


def test_round_trip(path, flat, provenance):
    loaded = demos.load(path)
    assert loaded.provenance == provenance
    for name, array in to_flat(loaded).items():
        np.testing.assert_array_equal(array, flat[name])
    assert demos.load(str(path)).num_episodes == 3


def test_optional_arrays_stay_away(tmp_path, flat):
    del flat["rewards"], flat["expert_log_probs"]
    demos.save(from_flat(flat), tmp_path / "new" / "demos.npz")
    loaded = demos.load(tmp_path / "new" / "demos.npz")
    assert loaded.trajectories.rewards is None and loaded.expert_log_probs is None
    assert loaded.provenance == demos.Provenance()


def test_the_same_demos_make_the_same_bytes(tmp_path, path, made):
    demos.save(made, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_a_file_by_numpy_alone_can_be_read(tmp_path, flat):
    np.savez(tmp_path / "plain.npz", **flat, metadata=np.str_('{"format_version": 1}'))
    assert demos.load(tmp_path / "plain.npz").num_episodes == 3


def test_fortran_order_is_understood(tmp_path, flat):
    flat["observations"] = np.asfortranarray(flat["observations"])
    np.savez(tmp_path / "f.npz", **flat, metadata=metadata())
    loaded = to_flat(demos.load(tmp_path / "f.npz"))
    np.testing.assert_array_equal(loaded["observations"], flat["observations"])


def test_nothing_is_overwritten_silently(path, made):
    before = path.read_bytes()
    with pytest.raises(DemosError, match="already exists"):
        demos.save(made[:1], path)
    assert path.read_bytes() == before
    demos.save(made[:1], path, overwrite=True)
    assert demos.load(path).num_episodes == 1


def test_a_failed_write_leaves_nothing_behind(path, made, monkeypatch):
    before = path.read_bytes()

    def full_disk(file, **_):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space"):
        demos.save(made, path, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_only_npz_files_are_written(tmp_path, made):
    with pytest.raises(DemosError, match="does not end in .npz"):
        demos.save(made, tmp_path / "demos.h5")


def test_what_could_not_be_read_is_not_written(tmp_path, made):
    wrong = dataclasses.replace(made.provenance, report={"policy": np.zeros(2)})
    with pytest.raises(DemosError, match="plain finite numbers"):
        demos.save(demos.Demos(made.trajectories, wrong), tmp_path / "a.npz")
    wrong = dataclasses.replace(made.provenance, report={"gap": float("nan")})
    with pytest.raises(DemosError, match="plain finite numbers"):
        demos.save(demos.Demos(made.trajectories, wrong), tmp_path / "a.npz")
    assert os.listdir(tmp_path) == []


def refused(path, message):
    with pytest.raises(DemosError, match=message) as caught:
        demos.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path):
    refused(tmp_path / "absent.npz", "no such file")
    (tmp_path / "folder.npz").mkdir()
    refused(tmp_path / "folder.npz", "not a file")
    (tmp_path / "empty.npz").write_bytes(b"")
    refused(tmp_path / "empty.npz", "empty")
    (tmp_path / "text.npz").write_text("observation,action\n0.1,1\n")
    refused(tmp_path / "text.npz", "not a .npz archive")


def test_unknown_names_are_refused():
    with pytest.raises(DemosError, match="no demonstrations 'cartpol'.*one of .*lqr"):
        demos.load("cartpol")


BAD_METADATA = {
    "missing": ({}, "no array `metadata`"),
    "not JSON": ({"metadata": np.frombuffer(b"{", np.uint8)}, "not JSON"),
    "not UTF-8": ({"metadata": np.frombuffer(b"\xff\xff", np.uint8)}, "not text"),
    "numbers": ({"metadata": np.zeros(3)}, "not text"),
    "a list": ({"metadata": np.frombuffer(b"[1]", np.uint8)}, "format_version"),
    "deep": ({"metadata": np.frombuffer(b"[" * 90000, np.uint8)}, "not JSON"),
    "too much": ({"metadata": np.zeros(2**20, np.uint8)}, "metadata has"),
    "NaN": ({"metadata": metadata(temperature=float("nan"))}, "not a JSON number"),
    "other version": ({"metadata": metadata(format_version=2)}, "format version 2"),
    "true as version": ({"metadata": metadata(format_version=True)}, "version True"),
    "unknown entry": ({"metadata": metadata(author="me")}, r"entries \['author'\]"),
    "wrong type": ({"metadata": metadata(horizon="x")}, "not a whole number"),
    "boolean number": ({"metadata": metadata(seed=True)}, "not a whole number"),
    "number as text": ({"metadata": metadata(environment=1)}, "not text"),
    "list of options": ({"metadata": metadata(options=[1])}, "not a dictionary"),
    "temperature": ({"metadata": metadata(temperature=0)}, "not positive"),
    "discount": ({"metadata": metadata(discount=1.5)}, r"not in \(0, 1\]"),
    "horizon": ({"metadata": metadata(horizon=2)}, "recorded horizon is 2"),
    "other environment": (
        {"metadata": metadata(environment="pendulum")},
        "Pendulum has 3",
    ),
    "unknown options": (
        {"metadata": metadata(environment="cartpole", options={"wheels": 4})},
        "cannot be made with the recorded options",
    ),
    "odd options": (
        {"metadata": metadata(environment="lqr", options={"A": {"x": 1}})},
        "cannot be made with the recorded options",
    ),
}


@pytest.mark.parametrize("case", BAD_METADATA)
def test_bad_metadata_get_one_sentence(tmp_path, flat, case):
    extra, message = BAD_METADATA[case]
    np.savez(tmp_path / "bad.npz", **flat, **extra)
    refused(tmp_path / "bad.npz", message)


def test_bad_arrays_are_refused_on_loading_too(tmp_path, flat):
    flat["actions"][0] = 7
    np.savez(tmp_path / "a.npz", **flat, metadata=metadata(environment="cartpole"))
    refused(tmp_path / "a.npz", "an action 7")
    np.savez(tmp_path / "b.npz", **flat, infos=np.zeros(3), metadata=metadata())
    refused(tmp_path / "b.npz", "unknown array `infos`")


class Bomb:
    exploded = False

    def __setstate__(self, state):
        Bomb.exploded = True

    def __reduce__(self):
        return (Bomb, (), {"armed": True})


def test_pickles_are_refused_and_never_run(tmp_path, flat):
    pickle.loads(pickle.dumps(Bomb()))
    assert Bomb.exploded  # It is a live one.
    Bomb.exploded = False
    flat["actions"] = np.array([Bomb()] * 7, object)
    np.savez(tmp_path / "bad.npz", **flat, metadata=metadata())
    refused(tmp_path / "bad.npz", "Python objects")
    assert not Bomb.exploded


def npy(header, body=b""):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + body


def write_members(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(f"{name}.npy", data)


def array_members(flat):
    for name, array in {**flat, "metadata": metadata()}.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, allow_pickle=False)
        yield name, stream.getvalue()


FLOATS = {"descr": "<f4", "fortran_order": False}
BAD_MEMBERS = {
    "no NumPy array": (b"hello", "not a NumPy array"),
    "nothing": (b"", "not a NumPy array"),
    "a promise of terabytes": (npy(FLOATS | {"shape": (2**40, 4)}), "0 bytes follow"),
    "an overflowing shape": (npy(FLOATS | {"shape": (2**62, 8)}), "0 bytes follow"),
    "a negative shape": (npy(FLOATS | {"shape": (-1, -4)}, bytes(16)), "damaged"),
    "too few bytes": (npy(FLOATS | {"shape": (10, 4)}, bytes(12)), "12 bytes follow"),
    "too many bytes": (npy(FLOATS | {"shape": (2,)}, bytes(12)), "12 bytes follow"),
    "empty items": (
        npy({"descr": "|V0", "fortran_order": False, "shape": (10, 4)}),
        "damaged",
    ),
    "an unknown format": (b"\x93NUMPY\x09\x00" + bytes(80), "not a NumPy array"),
}


@pytest.mark.parametrize("case", BAD_MEMBERS)
def test_bad_members_get_one_sentence(tmp_path, flat, case):
    data, message = BAD_MEMBERS[case]
    members = dict(array_members(flat)) | {"observations": data}
    write_members(tmp_path / "bad.npz", members.items())
    refused(tmp_path / "bad.npz", message)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path, flat):
    members = [*array_members(flat), ("rewards", b"")]
    write_members(tmp_path / "bad.npz", members)
    refused(tmp_path / "bad.npz", "twice")


def test_what_would_fill_the_memory_is_refused_unread(tmp_path, flat, monkeypatch):
    write_members(tmp_path / "big.npz", array_members(flat))
    monkeypatch.setattr(reading, "MAX_BYTES", 100)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("was read"))
    refused(tmp_path / "big.npz", "GB of memory")


def test_a_file_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for size in {*range(0, len(whole), 7), *range(len(whole) - 80, len(whole))}:
        path.write_bytes(whole[:size])
        with pytest.raises(DemosError):
            demos.load(path)


def test_a_flipped_byte_is_refused_or_harmless(path, flat):
    """Most bytes are guarded by checksums; some, such as dates, mean nothing."""
    whole, generator, refusals = path.read_bytes(), np.random.default_rng(0), 0
    for position in generator.permutation(len(whole))[:400]:
        damaged = bytearray(whole)
        damaged[position] ^= generator.integers(1, 256)
        path.write_bytes(damaged)
        try:
            loaded = demos.load(path)
        except DemosError:
            refusals += 1
        else:
            arrays = to_flat(loaded)
            for name in arrays:
                np.testing.assert_array_equal(arrays[name], flat[name])
    assert refusals > 200


def test_random_bytes_are_refused(path):
    generator = np.random.default_rng(0)
    for size in (1, 10, 100, 1000):
        path.write_bytes(b"PK\x03\x04" + generator.bytes(size))
        with pytest.raises(DemosError):
            demos.load(path)
