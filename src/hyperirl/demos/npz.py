"""Demonstrations in a file: `.npz`, compressed, without pickles.

Beside the flat arrays there is `metadata`: JSON as UTF-8 bytes.
"""

from pathlib import Path

import numpy as np

from hyperirl.demos import archive
from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import OPTIONAL, REQUIRED, from_flat, to_flat
from hyperirl.demos.provenance import Provenance
from hyperirl.demos.reading import refusing
from hyperirl.demos.writing import whole_file

SUFFIX = ".npz"
_METADATA = "metadata"
_MAX_METADATA_BYTES = 2**20


def write(demos: Demos, path: Path) -> None:
    """Writes all of the file or, if that fails, nothing."""
    arrays = to_flat(demos)
    from_flat(arrays, demos.provenance)  # What could not be read is not written.
    text = demos.provenance.to_json().encode()
    arrays[_METADATA] = np.frombuffer(text, np.uint8)
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def recognizes(path: Path) -> bool:
    """Whether this is one of our files, or a broken one."""
    return path.suffix == SUFFIX or _METADATA in archive.names(path)


def read(path: Path) -> Demos:
    """The demonstrations in a file; `DemosError` says what is wrong with it."""
    with refusing(path):
        _check_names(archive.names(path))
        arrays = archive.read(path)
        if _METADATA not in arrays:
            raise DemosError(
                "There is no array `metadata`; write the file with "
                "`hyperirl.demos.save`."
            )
        return from_flat(arrays, _parse_metadata(arrays.pop(_METADATA)))


def _check_names(names: tuple[str, ...]) -> None:
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
