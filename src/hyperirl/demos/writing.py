"""Files that are written whole or not at all, and replace nothing unless asked to."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hyperirl.demos.errors import DemosError


def check_free(path: Path, *, overwrite: bool) -> None:
    """`DemosError` if something is there that must not be replaced."""
    if path.is_dir() or (path.exists() and not overwrite):
        raise DemosError(
            f"{path} already exists and is not overwritten; choose another name, or "
            "say `overwrite` if it is a file that is not needed any more."
        )


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which comes to its place when all of it was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
