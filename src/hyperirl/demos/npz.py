"""Demonstrations in a file: `.npz`, compressed, without pickles.

Beside the flat arrays there is `metadata`: JSON as UTF-8 bytes. A file may come from
anybody, so it is read by `hyperirl.archive`, which believes nothing in it.
"""

import os
from pathlib import Path

import numpy as np

from hyperirl import archive
from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import OPTIONAL, REQUIRED, from_flat, to_flat
from hyperirl.demos.provenance import Provenance

_METADATA = "metadata"
_MAX_METADATA_BYTES = 2**20


def write(demos: Demos, path: Path, *, overwrite: bool = False) -> None:
    """Writes the file beside its place and then renames it: all of it or nothing."""
    check_writable(path, overwrite=overwrite)
    arrays = to_flat(demos)
    from_flat(arrays, demos.provenance)  # What could not be read is not written.
    text = demos.provenance.to_json().encode()
    arrays["metadata"] = np.frombuffer(text, np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path, *, overwrite: bool) -> None:
    """`DemosError` if demonstrations must not be written there."""
    if path.suffix != ".npz":
        raise DemosError(
            f"{path} does not end in .npz, the one format demonstrations are written "
            f"in; try {path.name}.npz."
        )
    if path.exists() and not overwrite:
        raise DemosError(
            f"{path} already exists and is not overwritten; choose another name, or "
            "say `overwrite` if it is not needed any more."
        )


def read(path: Path) -> Demos:
    """The demonstrations in a file; `DemosError` says what is wrong with it."""
    try:
        arrays = _read_arrays(path)
        if _METADATA not in arrays:
            raise DemosError(
                "There is no array `metadata`; write the file with "
                "`hyperirl.demos.save`."
            )
        return from_flat(arrays, _parse_metadata(arrays.pop(_METADATA)))
    except DemosError as error:
        raise DemosError(f"Cannot use {path}: {error}") from error


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise DemosError("There is no such file; check the path.")
    if not path.is_file():
        raise DemosError("It is not a file; give the path of a .npz file.")
    if path.stat().st_size == 0:
        raise DemosError("The file is empty; collect the demonstrations again.")
    try:
        found = archive.names(path)
        _check_names(found)
        return archive.read(path, found, compressed=True)
    except PermissionError as error:
        raise DemosError("You may not read it; change its permissions.") from error
    except archive.ArchiveError as error:
        raise DemosError(
            "It is not a .npz archive of plain numbers, or it is damaged or incomplete "
            f"({error}); copy it again, or write it again with `hyperirl.demos.save`."
        ) from error


def _check_names(names: list[str]) -> None:
    """Refuses an archive by its directory, before anything is decompressed."""
    if unknown := sorted(set(names) - {*REQUIRED, *OPTIONAL, _METADATA}):
        raise DemosError(
            f"There is an unknown array `{unknown[0][:40]}`; demonstrations hold "
            f"{', '.join((*REQUIRED, _METADATA))} and perhaps {', '.join(OPTIONAL)}."
        )


def _parse_metadata(array: np.ndarray) -> Provenance:
    if array.nbytes >= _MAX_METADATA_BYTES:
        raise DemosError(
            f"The metadata has {array.nbytes} bytes, and fewer than "
            f"{_MAX_METADATA_BYTES} are read; store less there."
        )
    try:
        if array.dtype.kind == "U" and array.ndim == 0:  # `np.savez(metadata=text)`
            text = str(array)
        elif array.dtype == np.uint8 and array.ndim == 1:
            text = array.tobytes().decode()
        else:
            raise ValueError(f"type {array.dtype}, shape {array.shape}")
    except ValueError as error:
        raise DemosError(
            f"`metadata` is not text ({error}); it must be JSON as UTF-8 bytes in an "
            "array of type uint8."
        ) from error
    return Provenance.from_json(text)
