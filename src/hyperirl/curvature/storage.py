"""Sketches on disk: one `.npz` file of plain arrays, never a pickle."""

import os
import pathlib
import tempfile
import zipfile

import jax.numpy as jnp
import numpy as np

from hyperirl.curvature.sketch import Shrinkage, Sketch

_VERSION = 1
_ARRAYS = {
    "rows": 2,
    "buffer": 2,
    "pending": 0,
    "shrinkage": 0,
    "rounding": 0,
    "rows_seen": 0,
    "rows_refused": 0,
}  # Name and number of axes.


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
        with np.load(path, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(f"{path} is not a sketch file: {error}") from error
    _check(path, content)
    arrays = {name: jnp.asarray(content[name]) for name in _ARRAYS}
    return Sketch(**arrays, rule=Shrinkage(str(content["rule"])))


def _check(path: pathlib.Path, content: dict[str, np.ndarray]) -> None:
    """Refuses content that is not exactly a sketch of this version."""
    expected = {"version", "rule", *_ARRAYS}
    if set(content) != expected:
        raise ValueError(
            f"{path} is not a sketch file: it holds {sorted(content)}, expected "
            f"{sorted(expected)}."
        )
    if content["version"].shape != () or content["version"] != _VERSION:
        raise ValueError(
            f"{path} has version {content['version']}, but this package reads version "
            f"{_VERSION}. Read it with the version of the package that wrote it."
        )
    if str(content["rule"]) not in {rule.value for rule in Shrinkage}:
        raise ValueError(f"{path} names an unknown rule, {content['rule']}.")
    for name, axes in _ARRAYS.items():
        array = content[name]
        kinds = "f" if name in ("rows", "buffer", "shrinkage", "rounding") else "i"
        if array.ndim != axes or array.dtype.kind not in kinds:
            raise ValueError(
                f"{path}: `{name}` is {array.dtype} of shape {array.shape}; this is "
                "not a sketch, or the file is damaged."
            )
        if kinds == "f" and not np.isfinite(array).all():
            raise ValueError(f"{path}: `{name}` has entries that are not finite.")
    rows, buffer = content["rows"], content["buffer"]
    if rows.shape[1] != buffer.shape[1] or rows.dtype != buffer.dtype:
        raise ValueError(
            f"{path}: `rows` ({rows.dtype}, {rows.shape}) and `buffer` "
            f"({buffer.dtype}, {buffer.shape}) do not fit together."
        )
    if not 0 <= content["pending"] <= buffer.shape[0] or content["shrinkage"] < 0:
        raise ValueError(f"{path}: its counts are out of range; the file is damaged.")
