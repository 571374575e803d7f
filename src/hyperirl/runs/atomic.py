"""Files that are there in full or not at all, whenever the process is killed."""

import contextlib
import os
from pathlib import Path


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside the place, waits for the disk, then renames.

    A kill leaves the old file as it was and perhaps a `.part` file beside it. An error
    names the file that was to be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(OSError):  # The folder may be gone.
            temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Removes what killed writers of this file left behind; for its only writer."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        leftover.unlink(missing_ok=True)


def keep(path: Path, name: Path) -> None:
    """Gives a file a second name, under which it outlives its replacement."""
    if not path.exists():
        return
    try:
        temporary = name.with_name(f".{name.name}.{os.getpid()}.part")
        temporary.unlink(missing_ok=True)
        os.link(path, temporary)
        os.replace(temporary, name)
        temporary.unlink(missing_ok=True)  # It stays if both were the same file.
    except OSError:  # Some file systems know no second names.
        write_bytes(name, path.read_bytes())
