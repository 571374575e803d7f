"""Demonstrations by name or path: the one place that knows where they can come from."""

import hashlib
from pathlib import Path

import numpy as np

from hyperirl import tasks
from hyperirl.demos import npz
from hyperirl.demos.checks import check_against
from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import to_flat
from hyperirl.demos.provenance import Provenance
from hyperirl.environments import AbstractWorld

_DATA = Path(__file__).parent / "data"
bundled: tuple[str, ...] = tuple(sorted(path.stem for path in _DATA.glob("*.npz")))


def load(source: str | Path) -> Demos:
    """Demonstrations, checked: all of them or a `DemosError`.

    If they name one of our environments, they are checked against it too.

    Args:
        source: A name in `bundled`, such as `"cartpole"`, or the path of a `.npz` file.
    """
    if source in bundled:
        path = _DATA / f"{source}.npz"
    else:
        path = Path(source)
        if path.suffix != ".npz":
            raise DemosError(
                f"There are no demonstrations {str(source)!r}; give the path of a .npz "
                f"file, or one of {', '.join(bundled)}."
            )
    demos = npz.read(path)
    try:
        environment = environment_of(demos.provenance)
        if environment is not None:
            check_against(demos, environment)
    except DemosError as error:
        raise DemosError(f"Cannot use {path}: {error}") from error
    return demos


def save(demos: Demos, path: str | Path, *, overwrite: bool = False) -> None:
    """Writes a `.npz` file that `load` reads: all of it or, if that fails, nothing."""
    npz.write(demos, Path(path), overwrite=overwrite)


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
