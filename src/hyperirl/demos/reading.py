"""What every reader needs: a file may come from anybody, and nothing is believed."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperirl.demos.errors import DemosError

MAX_BYTES = 2**31
_MAX_JSON_BYTES = 2**20


@contextlib.contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Names the file in what is raised while it is read, whatever a library raises."""
    try:
        yield
    except DemosError as error:
        raise DemosError(f"Cannot use {path}: {error}") from error
    except PermissionError as error:
        raise DemosError(
            f"Cannot use {path}: You may not read it; change its permissions."
        ) from error
    except ImportError as error:
        raise DemosError(
            f"Cannot use {path}: Reading it needs {error.name}, which is not "
            "installed; run `pip install 'hyperirl[demos]'`."
        ) from error
    except Exception as error:  # Whatever a damaged file makes a library raise.
        reason = " ".join(str(error).split())[:120]
        raise DemosError(
            f"Cannot use {path}: It is damaged or incomplete ({reason}); copy it again "
            "or collect the demonstrations again."
        ) from error


def check_size(num_bytes: int) -> None:
    """Refuses what would fill the memory, before it is read."""
    if num_bytes > MAX_BYTES:
        raise DemosError(
            f"It would take more than {MAX_BYTES // 2**30} GB of memory; split it into "
            "several."
        )


def read_json(path: Path) -> dict[str, Any]:
    """A small file of JSON that holds a dictionary."""
    if not path.is_file():
        raise DemosError(
            f"There is no file {path.name} in it; copy the whole folder again."
        )
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise DemosError(
            f"{path.name} has more than {_MAX_JSON_BYTES} bytes; store less there."
        )
    return parse_json(path.read_bytes(), path.name)


def parse_json(text: str | bytes, name: str) -> dict[str, Any]:
    """The dictionary that a text spells."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DemosError(
            f"{name} is not JSON ({error}); copy it again from where it was made."
        ) from error
    if not isinstance(found, dict):
        raise DemosError(
            f"{name} is not a dictionary; copy it again from where it was made."
        )
    return found
