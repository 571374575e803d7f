"""Files that are there in full or not at all, whenever the process is killed."""

import os
from pathlib import Path


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside the place, waits for the disk, then renames.

    A kill leaves the old file as it was and perhaps a `.part` file beside it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Removes what killed writers of this file left behind; for its only writer."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        leftover.unlink(missing_ok=True)
