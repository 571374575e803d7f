"""The arrays of a pytree in a `.npz` file, each under its path in the tree.

Beside them there is `metadata`: JSON as UTF-8 bytes, which says the type and shape of
every array. A file may come from anybody: nothing in it is a pickle, members are not
compressed (so that a small file cannot fill the memory), and every array is compared
with what is expected before it is believed. The same arrays give the same bytes.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, PyTree

from hyperirl import archive
from hyperirl.runs import atomic, documents

FORMAT = "hyperirl arrays"
VERSION = 1
_METADATA = "metadata"
_MAX_METADATA_BYTES = 2**22


class ArraysError(ValueError):
    """A file of arrays that cannot be used: why not, and what to do."""


def save_arrays(
    path: str | Path, tree: PyTree, metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes the JAX arrays of a tree, typed random keys included, all or nothing.

    Other leaves (numbers, functions, NumPy arrays) are not stored.

    Args:
        path: Of the file; one that is there is replaced.
        tree: Any pytree.
        metadata: Kept with the arrays: plain finite numbers, strings, lists, mappings.
    """
    leaves = _named_leaves(tree)
    described = {
        "format": FORMAT,
        "version": VERSION,
        "arrays": {name: _describe(leaf) for name, leaf in leaves.items()},
        "keys": {n: str(jr.key_impl(x)) for n, x in leaves.items() if _is_key(x)},
        "metadata": dict(metadata or {}),
    }
    try:
        text = json.dumps(described, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArraysError(
            "What is kept beside arrays must be plain finite numbers, strings, lists "
            f"and dictionaries ({error}); convert arrays with `.tolist()`."
        ) from error
    members = {_METADATA: np.frombuffer(text.encode(), np.uint8)}
    members |= named_arrays(tree)
    atomic.write_bytes(Path(path), _archive(members))


def load_arrays(path: str | Path, like: PyTree) -> PyTree:
    """`like` with its arrays replaced by those of a file that `save_arrays` wrote.

    Args:
        path: Of the file.
        like: Says which arrays are expected; leaves may also be
            `jax.ShapeDtypeStruct`. What is not an array comes from here.
    """
    path = Path(path)
    described = _read_description(path)
    expected = _named_leaves(like)
    _check_expected(path, described["arrays"], expected)
    members = _read_members(path, list(expected))
    loaded = {
        name: _from_numpy(path, name, members[name], leaf, described["keys"].get(name))
        for name, leaf in expected.items()
    }
    arrays, rest = eqx.partition(like, _is_stored)
    put = lambda place, leaf: loaded[_name(place)]
    return eqx.combine(jax.tree_util.tree_map_with_path(put, arrays), rest)


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """The arrays of a tree as `save_arrays` names and stores them."""
    return {name: _to_numpy(leaf) for name, leaf in _named_leaves(tree).items()}


def load_metadata(path: str | Path) -> dict[str, Any]:
    """What `save_arrays` was given as `metadata`; reads no array."""
    return _read_description(Path(path))["metadata"]


def _is_stored(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _name(place: tuple) -> str:
    return "tree" + jax.tree_util.keystr(place)


def _named_leaves(tree: PyTree) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, _is_stored))
    return {_name(place): leaf for place, leaf in leaves}


def _describe(leaf: Any) -> str:
    """Type and shape, such as `float32[3,4]`."""
    return f"{leaf.dtype}[{','.join(str(axis) for axis in leaf.shape)}]"


def _to_numpy(leaf: Array) -> np.ndarray:
    array = np.asarray(jr.key_data(leaf) if _is_key(leaf) else leaf)
    if array.dtype.kind == "V":  # `bfloat16` and the like: NumPy's format has no name.
        array = array.view(f"u{array.dtype.itemsize}")
    return array


def _from_numpy(
    path: Path, name: str, array: np.ndarray, like: Any, implementation: str | None
) -> Array:
    """The array again, with the type and shape of `like`."""
    try:
        if _is_key(like):
            leaf = jr.wrap_key_data(jnp.asarray(array), impl=implementation)
        elif np.dtype(like.dtype).kind == "V":
            leaf = jnp.asarray(array.view(like.dtype))
        else:
            leaf = jnp.asarray(array)
        if _describe(leaf) == _describe(like):
            return leaf
    except (TypeError, ValueError):
        pass  # Such as key data of the wrong length: told below.
    raise ArraysError(
        f"{path} says that `{name}` is {_describe(like)}, and it holds {array.dtype} "
        f"of shape {array.shape}; the file is damaged, so write it again."
    )


def _archive(members: Mapping[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        for name, array in members.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            # `ZipInfo` without a date: the same arrays give the same bytes.
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())
    return stream.getvalue()


def _read_members(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Some arrays of a file, checked only for being what they say they are."""
    if not path.exists():
        raise ArraysError(f"There is no file {path}; check the path.")
    if not path.is_file():
        raise ArraysError(f"{path} is not a file; give the path of a .npz file.")
    try:
        return archive.read(path, names)
    except archive.ArchiveError as error:
        raise ArraysError(
            f"{path} was not written by this package, or it is damaged or incomplete "
            f"({error}); copy it again, or write it again."
        ) from error


def _read_description(path: Path) -> dict[str, Any]:
    text = _read_members(path, [_METADATA])[_METADATA].tobytes()
    if len(text) > _MAX_METADATA_BYTES:
        raise ArraysError(
            f"{path} has {len(text)} bytes of metadata, and {_MAX_METADATA_BYTES} are "
            "read; write it again with less."
        )
    try:
        described = documents.parse(text)
    except ValueError as error:
        raise ArraysError(
            f"{path} has metadata that is not JSON to be used ({error}); write it "
            "again."
        ) from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise ArraysError(
            f"{path} does not hold arrays of this package, but something else; give a "
            "file that hyperirl wrote."
        )
    if described.get("version") != VERSION:
        raise ArraysError(
            f"{path} has version {str(described.get('version'))[:20]} of the format, "
            f"and this hyperirl reads version {VERSION}; install the hyperirl that "
            "wrote it."
        )
    parts = [described.get(part) for part in ("arrays", "keys", "metadata")]
    if not all(isinstance(part, dict) for part in parts):
        raise ArraysError(
            f"{path} does not say which arrays it holds; it is damaged, so write it "
            "again."
        )
    return described


def _check_expected(
    path: Path, found: Mapping[str, str], expected: Mapping[str, Any]
) -> None:
    """Refuses a file whose arrays are not those expected; names one that differs."""
    advice = "it was made with other settings, or by another version of hyperirl"
    if missing := sorted(set(expected) - set(found)):
        raise ArraysError(
            f"{path} lacks {len(missing)} of {len(expected)} arrays, the first being "
            f"`{missing[0]}`; {advice}."
        )
    if extra := sorted(set(found) - set(expected)):
        raise ArraysError(
            f"{path} holds {len(extra)} arrays that are not expected, the first being "
            f"`{extra[0][:60]}`; {advice}."
        )
    for name, leaf in expected.items():
        if found[name] != _describe(leaf):
            raise ArraysError(
                f"`{name}` is {str(found[name])[:60]} in {path}, and {_describe(leaf)} "
                f"is expected; {advice}."
            )
