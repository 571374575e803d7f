"""Demonstrations in a file: `.npz`, compressed, without pickles.

Beside the flat arrays there is `metadata`: JSON as UTF-8 bytes. A file may come from
anybody, so nothing in it is believed before it was checked: not the directory of the
archive, not the size an array says it has, and never a pickle.
"""

import io
import os
import zipfile
from pathlib import Path

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import OPTIONAL, REQUIRED, from_flat, to_flat
from hyperirl.demos.provenance import Provenance

_METADATA = "metadata"
_MAX_BYTES = 2**31
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
        members = _read_members(path)
        if _METADATA not in members:
            raise DemosError(
                "There is no array `metadata`; write the file with "
                "`hyperirl.demos.save`."
            )
        provenance = _parse_metadata(members.pop(_METADATA))
        arrays = {name: _parse_array(name, data) for name, data in members.items()}
        return from_flat(arrays, provenance)
    except DemosError as error:
        raise DemosError(f"Cannot use {path}: {error}") from error


def _read_members(path: Path) -> dict[str, bytes]:
    """The bytes of each array of the archive, decompressed."""
    if not path.exists():
        raise DemosError("There is no such file; check the path.")
    if not path.is_file():
        raise DemosError("It is not a file; give the path of a .npz file.")
    if path.stat().st_size == 0:
        raise DemosError("The file is empty; collect the demonstrations again.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(members)
            return {
                member.filename.removesuffix(".npy"): archive.read(member)
                for member in members
            }
    except DemosError:
        raise
    except PermissionError as error:
        raise DemosError("You may not read it; change its permissions.") from error
    except Exception as error:  # Whatever a damaged archive makes `zipfile` raise.
        raise DemosError(
            f"It is not a .npz archive, or it is damaged or incomplete ({error}); copy "
            "it again or collect the demonstrations again."
        ) from error


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    """Refuses an archive by its directory, before anything is decompressed."""
    names = [member.filename.removesuffix(".npy") for member in members]
    if unknown := sorted(set(names) - {*REQUIRED, *OPTIONAL, _METADATA}):
        raise DemosError(
            f"There is an unknown array `{unknown[0][:40]}`; demonstrations hold "
            f"{', '.join((*REQUIRED, _METADATA))} and perhaps {', '.join(OPTIONAL)}."
        )
    if len(set(names)) != len(names):
        raise DemosError(
            "An array is in the file twice; write it again with `hyperirl.demos.save`."
        )
    if sum(member.file_size for member in members) > _MAX_BYTES:
        raise DemosError(
            f"It would take more than {_MAX_BYTES // 2**30} GB of memory; split it "
            "into several files."
        )


def _parse_array(name: str, data: bytes) -> np.ndarray:
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        shape, fortran, dtype = readers[version](stream)
    except Exception as error:  # Whatever a damaged header makes NumPy raise.
        raise DemosError(
            f"`{name}` is not a NumPy array; write the file with `hyperirl.demos.save`."
        ) from error
    if dtype.hasobject:
        raise DemosError(
            f"`{name}` holds Python objects, which could run code when loaded; give "
            "plain numbers, padded by nothing: the steps of all episodes in a row."
        )
    size = dtype.itemsize * int(np.prod([int(axis) for axis in shape], dtype=object))
    body = data[stream.tell() :]
    if size != len(body) or not dtype.itemsize or min(shape, default=0) < 0:
        raise DemosError(
            f"`{name}` says it has shape {shape} of {dtype}, but {len(body)} bytes "
            "follow; the file is damaged, so collect the demonstrations again."
        )
    array = np.frombuffer(body, dtype)
    return array.reshape(shape, order="F" if fortran else "C")


def _parse_metadata(data: bytes) -> Provenance:
    if len(data) > _MAX_METADATA_BYTES:
        raise DemosError(
            f"The metadata has {len(data)} bytes, and at most {_MAX_METADATA_BYTES} "
            "are read; store less there."
        )
    array = _parse_array(_METADATA, data)
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
