"""Demonstrations by name or path: the one place that knows where they can come from."""

import hashlib
from pathlib import Path

import numpy as np

from hyperirl import tasks
from hyperirl.demos import imitation, minari, npz, table
from hyperirl.demos.checks import check_against
from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import to_flat
from hyperirl.demos.provenance import Provenance
from hyperirl.demos.writing import check_free
from hyperirl.environments import AbstractWorld

_DATA = Path(__file__).parent / "data"
bundled: tuple[str, ...] = tuple(sorted(path.stem for path in _DATA.glob("*.npz")))

# Each says whether it recognizes what is there; the first that does reads it.
_READERS = (imitation, minari, npz, table)
# Each writes what has its suffix; a path without one is a folder.
_WRITERS = (npz, table, minari)


def load(
    source: str | Path,
    *,
    environment: AbstractWorld | None = None,
    download: bool = False,
) -> Demos:
    """Demonstrations, checked: all of them or a `DemosError`.

    What is at a path is recognized by its content: our .npz, a Minari dataset,
    imitation's folder or old .npz, a table of CSV or a folder of them.

    Args:
        source: A name in `bundled`, such as `"cartpole"`; a path; or the id of a Minari
            dataset, such as `"CartPole/expert-v0"`, that is on this machine.
        environment: Checks them against it; if they name one of ours, against that one
            by default.
        download: Fetches a Minari dataset that is not on this machine.
    """
    path = _find(source, download)
    reader = next((reader for reader in _READERS if reader.recognizes(path)), None)
    if reader is None:
        raise DemosError(
            f"Cannot use {path}: It is not in a format that is known; give a .npz "
            "file, a Minari dataset, a folder by imitation, or CSV with named columns."
        )
    demos = reader.read(path)
    try:
        if environment is None:
            environment = environment_of(demos.provenance)
        if environment is not None:
            check_against(demos, environment)
    except DemosError as error:
        raise DemosError(f"Cannot use {path}: {error}") from error
    return demos


def _find(source: str | Path, download: bool) -> Path:
    if not isinstance(source, str | Path):
        raise DemosError(
            f"Demonstrations are a name, a path or `Demos`, got a "
            f"{type(source).__name__}; `hyperirl.demos.from_arrays` makes them of "
            "lists of arrays."
        )
    if source in bundled:
        return _DATA / f"{source}.npz"
    path = Path(source)
    if path.exists():
        return path
    if path.suffix:
        raise DemosError(f"Cannot use {path}: There is no such file; check the path.")
    found = minari.find(str(source), download=download)
    if found is None:
        raise DemosError(
            f"There are no demonstrations {str(source)!r}; give the path of a file or "
            f"folder, one of {', '.join(bundled)}, or the id of a Minari dataset that "
            "is on this machine (or ask for its download)."
        )
    return found


def save(demos: Demos, path: str | Path, *, overwrite: bool = False) -> None:
    """Writes what `load` reads: all of it or, if that fails, nothing.

    Args:
        demos: What to write.
        path: Ends in .npz; or in .csv; or in neither: the folder of a Minari dataset.
        overwrite: Replaces a file that is there. A folder is never replaced.
    """
    path = Path(path)
    check_writable(path, overwrite=overwrite)
    writer = next(writer for writer in _WRITERS if writer.SUFFIX == path.suffix)
    writer.write(demos, path)


def check_writable(path: Path, *, overwrite: bool) -> None:
    """`DemosError` if demonstrations must not be written there."""
    if path.suffix not in [writer.SUFFIX for writer in _WRITERS]:
        raise DemosError(
            f"{path} does not end in .npz or .csv, nor is it the name of a folder; try "
            f"{path.stem}.npz."
        )
    check_free(path, overwrite=overwrite)


def content_hash(demos: Demos) -> str:
    """A hash of everything that is learned from: equal for equal episodes."""
    digest = hashlib.sha256()
    for name, array in sorted(to_flat(demos).items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def environment_of(provenance: Provenance) -> AbstractWorld | None:
    """The environment demonstrations come from, if it is one of ours."""
    if provenance.environment not in tasks.names:
        return None
    try:
        return tasks.make(provenance.environment, **provenance.options).environment
    except Exception as error:  # The options come from a file and may be anything.
        raise DemosError(
            f"The environment {provenance.environment} cannot be made with the "
            f"recorded options ({error}); correct them."
        ) from error
