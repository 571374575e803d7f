"""NumPy's archives, read without pickles.

Nothing in one is believed before it was checked: not its directory, not the size an
array says it has, and never a pickle.
"""

import io
import zipfile
from collections.abc import Container
from pathlib import Path

import numpy as np

from hyperirl.demos import reading
from hyperirl.demos.errors import DemosError


def names(path: Path) -> tuple[str, ...]:
    """The arrays of an archive, or nothing if it is none; none of them is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except Exception:  # Whatever a damaged archive makes `zipfile` raise.
        return ()
    return tuple(member.removesuffix(".npy") for member in members)


def read_members(path: Path, skip: Container[str] = ()) -> dict[str, bytes]:
    """The bytes of each array of the archive, decompressed.

    Args:
        path: The file.
        skip: Arrays that are left alone.
    """
    if not path.exists():
        raise DemosError("There is no such file; check the path.")
    if not path.is_file():
        raise DemosError("It is not a file; give the path of a .npz file.")
    if path.stat().st_size == 0:
        raise DemosError("The file is empty; collect the demonstrations again.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                member: member.filename.removesuffix(".npy")
                for member in archive.infolist()
            }
            wanted = {m: name for m, name in members.items() if name not in skip}
            _check_members(wanted)
            return {name: archive.read(member) for member, name in wanted.items()}
    except (DemosError, PermissionError):
        raise
    except Exception as error:  # Whatever a damaged archive makes `zipfile` raise.
        raise DemosError(
            f"It is not a .npz archive, or it is damaged or incomplete ({error}); copy "
            "it again or collect the demonstrations again."
        ) from error


def _check_members(members: dict[zipfile.ZipInfo, str]) -> None:
    """Refuses an archive by its directory, before anything is decompressed."""
    if len(set(members.values())) != len(members):
        raise DemosError(
            "An array is in the file twice; write it again with `hyperirl.demos.save`."
        )
    reading.check_size(sum(member.file_size for member in members))


def parse_array(name: str, data: bytes) -> np.ndarray:
    """An array of plain numbers or text; anything else is a `DemosError`."""
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
