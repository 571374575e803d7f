"""Groups of an HDF5 file, as NumPy arrays: nothing that lies elsewhere is followed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperirl.demos import reading
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flattening import Columns

if TYPE_CHECKING:
    import h5py

START = b"\x89HDF\r\n\x1a\n"
_MAX_DEPTH = 8


class Reader:
    """An open file, and how much of it was read."""

    def __init__(self, file: "h5py.File"):
        self._file = file
        self._bytes = 0

    def names(self) -> list[str]:
        """The groups of the file."""
        return list(self._file)

    def columns(self, *path: str, depth: int = 0) -> Columns | None:
        """A dataset, or the datasets of a group by name; `None` if it is not there."""
        import h5py

        item: Any = self._file
        for name in path:
            if not isinstance(item, h5py.Group) or name not in item:
                return None
            if not isinstance(item.get(name, getlink=True), h5py.HardLink):
                raise DemosError(
                    f"`{name[:40]}` points elsewhere, which could be any file; copy "
                    "the data itself into the file."
                )
            item = item[name]
        if isinstance(item, h5py.Dataset):
            return self._array(item, path[-1])
        if depth >= _MAX_DEPTH:
            raise DemosError("Its groups are nested too deeply; write it again.")
        parts = {name: self.columns(*path, name, depth=depth + 1) for name in item}
        return {name: part for name, part in parts.items() if part is not None}

    def _array(self, dataset: "h5py.Dataset", name: str) -> np.ndarray:
        if dataset.is_virtual or dataset.external:
            raise DemosError(
                f"`{name[:40]}` lies in another file; copy the data itself into it."
            )
        if dataset.dtype.kind not in "fiub":
            raise DemosError(
                f"`{name[:40]}` holds {dataset.dtype} rather than numbers; record "
                "numbers instead (images are not read)."
            )
        self._bytes += dataset.nbytes  # As it claims: it may be compressed.
        reading.check_size(self._bytes)
        return np.asarray(dataset[()])


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """The file, for reading."""
    import h5py

    if not path.is_file():
        raise DemosError(f"There is no file {path.name}; copy the whole folder again.")
    with h5py.File(path, "r", locking=False) as file:
        yield Reader(file)
