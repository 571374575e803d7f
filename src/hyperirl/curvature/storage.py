"""Sketches on disk: one `.npz` file of plain arrays, never a pickle."""

import os
import pathlib
import tempfile

import jax.numpy as jnp
import numpy as np

from hyperirl import archive
from hyperirl.curvature.sketch import Shrinkage, Sketch

_VERSION = 1
_FLOATS, _INTEGERS = ("<f2", "<f4", "<f8"), ("<i4", "<i8")
_ARRAYS = {
    "rows": (2, _FLOATS),
    "buffer": (2, _FLOATS),
    "pending": (0, _INTEGERS),
    "shrinkage": (0, _FLOATS),
    "rounding": (0, _FLOATS),
    "rows_seen": (0, _INTEGERS),
    "rows_refused": (0, _INTEGERS),
}  # Name, number of axes and types.
_RULES = {rule.value for rule in Shrinkage}


def save_sketch(sketch: Sketch, path: str | pathlib.Path) -> pathlib.Path:
    """Writes a sketch to a new file; an existing file is left alone and refused.

    The file appears whole or not at all.
    """
    path = pathlib.Path(path)
    if path.exists():
        raise FileExistsError(
            f"{path} already exists and is not overwritten. Remove it or choose "
            "another name."
        )
    arrays = {name: np.asarray(getattr(sketch, name)) for name in _ARRAYS}
    arrays["version"] = np.asarray(_VERSION)
    arrays["rule"] = np.asarray(sketch.rule.value)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # Unlike a rename, never replaces a file.
    finally:
        os.unlink(temporary)
    return path


def load_sketch(path: str | pathlib.Path) -> Sketch:
    """Reads a sketch written by `save_sketch`; anything else is refused."""
    path = pathlib.Path(path)
    try:
        content = _read(path)
        _check(content)
    except archive.ArchiveError as error:
        raise ValueError(
            f"{path} is not a sketch file, or it is damaged: {error}; copy it again, "
            "or write it again with `save_sketch`."
        ) from error
    arrays = {name: jnp.asarray(content[name]) for name in _ARRAYS}
    return Sketch(**arrays, rule=Shrinkage(str(content["rule"])))


def _read(path: pathlib.Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise archive.ArchiveError("there is no such file")
    expected = {"version", "rule", *_ARRAYS}
    found = set(archive.names(path))
    if extra := sorted(found - expected):
        raise archive.ArchiveError(f"`{extra[0][:60]}` is not expected")
    return archive.read(path, sorted(expected))


def _check(content: dict[str, np.ndarray]) -> None:
    """Refuses content that is not exactly a sketch of this version."""
    version, rule = content["version"], content["rule"]
    if version.ndim or version.dtype.kind != "i" or version != _VERSION:
        raise archive.ArchiveError(
            f"it has version {_short(version)}, and this package reads {_VERSION}"
        )
    if rule.dtype.kind != "U" or str(rule) not in _RULES:
        raise archive.ArchiveError(f"it names an unknown rule, {_short(rule)}")
    for name, (axes, types) in _ARRAYS.items():
        array = content[name]
        if array.ndim != axes or array.dtype.str not in types:
            raise archive.ArchiveError(
                f"`{name}` is {_short(array.dtype)} of shape {_short(array.shape)}"
            )
        if types is _FLOATS and not np.isfinite(array).all():
            raise archive.ArchiveError(f"`{name}` has entries that are not finite")
    _check_rows(content["rows"], content["buffer"], content["pending"])
    counted = 0 <= content["rows_refused"] <= content["rows_seen"]
    if not counted or min(content["shrinkage"], content["rounding"]) < 0:
        raise archive.ArchiveError("its counts are out of range")


def _check_rows(rows: np.ndarray, buffer: np.ndarray, pending: np.ndarray) -> None:
    if rows.shape[1] != buffer.shape[1] or rows.dtype != buffer.dtype:
        raise archive.ArchiveError(
            f"`rows` ({rows.dtype}, {rows.shape}) and `buffer` ({buffer.dtype}, "
            f"{buffer.shape}) do not fit together"
        )
    if not len(rows) or not len(buffer) or not 0 <= pending <= len(buffer):
        raise archive.ArchiveError(
            f"{pending} rows are said to wait in a buffer of {len(buffer)}, for "
            f"{len(rows)} rows that are kept, which is out of range"
        )
    if buffer[int(pending) :].any():
        raise archive.ArchiveError("more rows wait in the buffer than it says")


def _short(value: object) -> str:
    return str(value)[:60]
