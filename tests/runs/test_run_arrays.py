import errno
import io
import json
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from hyperirl.networks import MLP
from hyperirl.runs import ArraysError, load_arrays, load_metadata, save_arrays


def _state(key):
    """One of everything a training state is made of."""
    network = MLP((3, 4, 2), key=key)
    optimizer_state = optax.adam(1e-3).init(eqx.filter(network, eqx.is_array))
    return {
        "network": network,
        "optimizer": optimizer_state,
        "key": jr.key(7),
        "keys": jr.split(jr.key(8, impl="rbg"), 3),
        "step": jnp.asarray(3),
        "flags": jnp.array([True, False]),
        "half": jnp.arange(3, dtype=jnp.bfloat16),
        "wide": jnp.full((2, 0), 1.0, jnp.float64),
        "name": "adam",
        "nothing": None,
    }


def _members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _npy(array, **kwargs):
    stream = io.BytesIO()
    np.save(stream, array, **kwargs)
    return stream.getvalue()


def test_everything_comes_back_bit_by_bit(tmp_path, getkey):
    state = _state(getkey())
    save_arrays(tmp_path / "a.npz", state, {"step": 3})
    blank = jax.tree.map(lambda x: jnp.zeros_like(x) if _is_number(x) else x, state)
    blank["key"], blank["name"] = jr.key(0), "from `like`"
    loaded = load_arrays(tmp_path / "a.npz", blank)
    assert loaded.pop("name") == "from `like`"
    assert eqx.tree_equal(loaded, {k: v for k, v in state.items() if k != "name"})
    assert jr.key_impl(loaded["keys"]) == jr.key_impl(state["keys"])
    assert load_metadata(tmp_path / "a.npz") == {"step": 3}


def _is_number(leaf):
    return eqx.is_array(leaf) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def test_shapes_are_enough_to_load(tmp_path):
    tree = {"x": jnp.arange(4.0), "key": jr.key(1)}
    save_arrays(tmp_path / "a.npz", tree)
    shapes = eqx.filter_eval_shape(lambda: tree)
    assert eqx.tree_equal(load_arrays(tmp_path / "a.npz", shapes), tree)


def test_a_bare_array_is_a_tree(tmp_path):
    save_arrays(tmp_path / "a.npz", jnp.arange(3.0))
    assert load_arrays(tmp_path / "a.npz", jnp.zeros(3)).tolist() == [0.0, 1.0, 2.0]


def test_the_same_arrays_give_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        save_arrays(tmp_path / name, {"x": jnp.arange(3.0)}, {"step": 1})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_the_file_without_pickles(tmp_path):
    save_arrays(tmp_path / "a.npz", {"x": jnp.arange(3.0)})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert file["tree['x']"].tolist() == [0.0, 1.0, 2.0]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    save_arrays(path, jnp.ones(2))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="space .*/a.npz"):
        save_arrays(path, jnp.zeros(2))
    assert load_arrays(path, jnp.zeros(2)).tolist() == [1.0, 1.0]
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


LIKE = {"x": jnp.zeros(3), "y": jnp.zeros((), jnp.int32)}


@pytest.mark.parametrize(
    "stored, words",
    [
        ({"x": jnp.zeros(3)}, "lacks 1 of 2 arrays, the first being `tree\\['y'\\]`"),
        (LIKE | {"z": jnp.zeros(1)}, "1 arrays that are not expected.*'z'"),
        (LIKE | {"x": jnp.zeros(4)}, "is float64\\[4\\] in .* and float64\\[3\\]"),
        (
            LIKE | {"x": jnp.zeros(3, jnp.float32)},
            "float32\\[3\\] in .* float64\\[3\\]",
        ),
    ],
    ids=["missing", "extra", "shape", "dtype"],
)
def test_arrays_that_are_not_expected_are_refused(tmp_path, stored, words):
    save_arrays(tmp_path / "a.npz", stored)
    with pytest.raises(ArraysError, match=words):
        load_arrays(tmp_path / "a.npz", LIKE)


def test_another_kind_of_random_key_is_refused(tmp_path):
    save_arrays(tmp_path / "a.npz", jr.key(0, impl="rbg"))
    with pytest.raises(ArraysError, match="key<rbg>.*key<fry>"):
        load_arrays(tmp_path / "a.npz", jr.key(0))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ArraysError, match="no file .*a.npz"):
        load_metadata(tmp_path / "a.npz")
    with pytest.raises(ArraysError, match="not a file"):
        load_metadata(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 torn"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ArraysError, match="not written by this package"):
        load_metadata(tmp_path / "a.npz")


def test_other_archives_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(ArraysError, match="no `metadata`"):
        load_arrays(tmp_path / "a.npz", LIKE)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_torn_files_are_refused(tmp_path, share):
    path = tmp_path / "a.npz"
    save_arrays(path, LIKE)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ArraysError, match="damaged"):
        load_arrays(path, LIKE)


def test_a_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": jnp.full(3, 1.0)})
    content = path.read_bytes()
    position = content.rindex(np.float64(1.0).tobytes())
    path.write_bytes(content[:position] + b"\xff" + content[position + 1 :])
    with pytest.raises(ArraysError, match="CRC"):
        load_arrays(path, {"x": jnp.zeros(3)})


def test_pickles_are_never_opened(tmp_path):
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": jnp.zeros(3)})
    members = _members(path)
    members["tree['x'].npy"] = _npy(np.array([print], object), allow_pickle=True)
    _write(path, members)
    with pytest.raises(ArraysError, match="could run code"):
        load_arrays(path, {"x": jnp.zeros(3)})


def test_compressed_members_are_refused(tmp_path):
    """Else a file of a few bytes could fill the memory."""
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": jnp.zeros(3)})
    _write(path, _members(path), zipfile.ZIP_DEFLATED)
    with pytest.raises(ArraysError, match="compressed"):
        load_arrays(path, {"x": jnp.zeros(3)})


@pytest.mark.parametrize(
    "array", [np.zeros(4), np.zeros(3, np.float32), np.zeros(3, np.int64)]
)
def test_a_description_that_lies_is_found(tmp_path, array):
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": jnp.zeros(3)})
    _write(path, _members(path) | {"tree['x'].npy": _npy(array)})
    with pytest.raises(ArraysError, match="says that .* is float64\\[3\\]"):
        load_arrays(path, {"x": jnp.zeros(3)})


@pytest.mark.parametrize(
    "change, words",
    [
        ({"format": "other"}, "something else"),
        ({"version": 2}, "version 2 of the format"),
        ({"arrays": None}, "does not say which arrays"),
        ({"keys": []}, "does not say which arrays"),
    ],
    ids=str,
)
def test_descriptions_that_are_not_known_are_refused(tmp_path, change, words):
    path = tmp_path / "a.npz"
    save_arrays(path, LIKE)
    members = _members(path)
    described = json.loads(np.load(io.BytesIO(members["metadata.npy"])).tobytes())
    text = json.dumps(described | change).encode()
    members["metadata.npy"] = _npy(np.frombuffer(text, np.uint8))
    _write(path, members)
    with pytest.raises(ArraysError, match=words):
        load_arrays(path, LIKE)


def test_metadata_that_is_not_json_is_refused(tmp_path):
    members = {"metadata.npy": _npy(np.frombuffer(b"[" * 10**5, np.uint8))}
    _write(tmp_path / "a.npz", members)
    with pytest.raises(ArraysError, match="not JSON"):
        load_metadata(tmp_path / "a.npz")


@pytest.mark.parametrize("value", [float("nan"), np.zeros(2), {1, 2}], ids=str)
def test_metadata_must_be_plain(tmp_path, value):
    with pytest.raises(ArraysError, match="plain finite numbers"):
        save_arrays(tmp_path / "a.npz", LIKE, {"value": value})
    assert not (tmp_path / "a.npz").exists()
