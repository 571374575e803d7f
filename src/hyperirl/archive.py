"""Arrays in a `.npz` archive that may come from anybody.

Nothing in it is believed before it was checked: not the directory of the archive, not
the size that an array says it has, and never a pickle. What is decompressed is limited
before it is read, by what the file itself weighs and in total, so a small file cannot
fill the memory.
"""

import contextlib
import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

MAX_BYTES = 2**31  # All arrays together.
MAX_RATIO = 100  # Bytes in memory for each byte of the file...
FREE_BYTES = 2**26  # ...beyond these, which any file may take.
_MAX_MEMBERS = 10_000
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# Others decompress as much as they like in one go.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class ArchiveError(ValueError):
    """An archive that cannot be read; says why, as a part of a sentence."""


def names(path: Path) -> list[str]:
    """The arrays that an archive says it holds; reads none of them."""
    with _open(path) as archive:
        return [_name(member) for member in _members(archive)]


def read(
    path: Path, wanted: Iterable[str], *, compressed: bool = False
) -> dict[str, np.ndarray]:
    """Some arrays of an archive, each checked only for being what it says it is.

    Args:
        path: Of the archive.
        wanted: Names of arrays; all must be there.
        compressed: Whether arrays may be compressed.
    """
    with _open(path) as archive:
        members = {_name(member): member for member in _members(archive)}
        if missing := [name for name in wanted if name not in members]:
            raise ArchiveError(f"there is no `{missing[0]}`")
        chosen = {name: members[name] for name in wanted}
        _check_sizes(path, list(chosen.values()), compressed)
        try:
            contents = {n: _content(archive, member) for n, member in chosen.items()}
        except Exception as error:  # Whatever a damaged member makes `zipfile` raise.
            raise ArchiveError(_reason(error)) from error
    return {name: _parse(name, content) for name, content in contents.items()}


class _File(io.BufferedReader):
    """Makes room only for what is there: `zipfile` asks for what the archive says."""

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


@contextlib.contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    with _File(io.FileIO(path)) as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # Whatever a damaged directory makes it raise.
            raise ArchiveError(_reason(error)) from error
        with archive:
            yield archive


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise ArchiveError(f"there are {len(members)} arrays in it")
    if not all(member.filename.isprintable() for member in members):
        raise ArchiveError("an array has a name that cannot be printed")
    if len({_name(member) for member in members}) != len(members):
        raise ArchiveError("an array is in it twice")
    return members


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _check_sizes(
    path: Path, members: Sequence[zipfile.ZipInfo], compressed: bool
) -> None:
    """Refuses what would fill the memory, before anything is read."""
    for member in members:
        if not compressed and member.compress_type != zipfile.ZIP_STORED:
            raise ArchiveError(f"`{_name(member)[:60]}` is compressed")
        if member.compress_type not in _METHODS:
            raise ArchiveError(
                f"`{_name(member)[:60]}` is compressed in a way that is not read"
            )
    total, weight = sum(member.file_size for member in members), path.stat().st_size
    most = max(FREE_BYTES, MAX_RATIO * weight) if compressed else weight
    if total > min(most, MAX_BYTES):
        raise ArchiveError(
            f"its {weight} bytes would take {total} bytes of memory, and "
            f"{min(most, MAX_BYTES)} are allowed"
        )


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, no more than the directory says.

    `ZipFile.read` would decompress all of it before it looks at the size.
    """
    with archive.open(member) as stream:
        return stream.read(member.file_size)


def _parse(name: str, content: bytes) -> np.ndarray:
    """The array in the bytes of a member; nothing is copied."""
    stream = io.BytesIO(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # What is odd is not read either.
            reader = _HEADERS[np.lib.format.read_magic(stream)]
            shape, fortran, dtype = reader(stream)
    except Exception as error:  # Whatever a damaged header makes NumPy raise.
        raise ArchiveError(f"`{name}` is not a NumPy array") from error
    if dtype.hasobject:
        raise ArchiveError(f"`{name}` holds Python objects, which could run code")
    start, size = stream.tell(), dtype.itemsize * math.prod(shape)
    follow = len(content) - start
    if size != follow or not dtype.itemsize or min(shape, default=0) < 0:
        raise ArchiveError(
            f"`{name}` says shape {_short(shape)} of {_short(dtype)}, and {follow} "
            "bytes follow"
        )
    array = np.frombuffer(content, dtype, offset=start)
    return array.reshape(shape, order="F" if fortran else "C")


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _short(value: object) -> str:
    return str(value)[:80]
