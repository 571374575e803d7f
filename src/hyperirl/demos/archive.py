"""NumPy's archives of demonstrations, read by the one reader that believes nothing."""

from collections.abc import Container
from pathlib import Path

import numpy as np

from hyperirl import archive
from hyperirl.demos.errors import DemosError


def names(path: Path) -> tuple[str, ...]:
    """The arrays of an archive, or nothing if it is none; none of them is read."""
    try:
        return tuple(archive.names(path))
    except (archive.ArchiveError, OSError):
        return ()


def read(path: Path, skip: Container[str] = ()) -> dict[str, np.ndarray]:
    """The arrays of an archive; `DemosError` if they are not plain numbers.

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
        wanted = [name for name in archive.names(path) if name not in skip]
        return archive.read(path, wanted, compressed=True)
    except archive.ArchiveError as error:
        raise DemosError(
            "It is not a .npz archive of plain numbers, or it is damaged or incomplete "
            f"({error}); copy it again, or write it again with `hyperirl.demos.save`."
        ) from error
