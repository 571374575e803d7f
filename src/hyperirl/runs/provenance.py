"""Where a run comes from: versions, commit, machine, command and time."""

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("hyperirl", "jax", "jaxlib", "numpy", "optax", "equinox")
FIELDS = {
    "command": list[str],
    "started": str,
    "versions": dict[str, str],
    "python": str,
    "platform": str,
    "cpu_count": int | None,
    "commit": str | None,
}
"""What `provenance` says, and the types of it."""


def provenance(command: Sequence[str]) -> dict[str, Any]:
    """What is true of this process now; plain text and numbers only."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "command": list(command),
        "started": now.isoformat(timespec="seconds"),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "commit": commit_of(Path(__file__)),
    }


def commit_of(file: Path) -> str | None:
    """The commit a file is checked out from, with `-dirty` if anything was changed.

    `None` if the file is not under version control: an installed package that lies
    somewhere below a checkout of other people's code does not belong to it.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return None
    describe = ("describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
    return _git(file.parent, *describe)


def _git(folder: Path, *args: str) -> str | None:
    """What git says, or `None` if there is no git or it refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *args],
            capture_output=True,
            text=True,
            timeout=20,
            # Never holds up somebody who is committing.
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
