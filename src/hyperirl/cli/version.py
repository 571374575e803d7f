"""`hyperirl version`: what is installed here, for bug reports."""

import platform
from importlib import metadata

from hyperirl.cli.arguments import command


@command
class Version:
    """Show the versions of hyperirl and of what it computes with, for bug reports."""

    def run(self) -> None:
        """Prints one name and version a line."""
        for name in ("hyperirl", "jax", "jaxlib", "equinox", "optax", "numpy"):
            print(f"{name} {metadata.version(name)}")
        print(f"python {platform.python_version()} on {platform.system()}")
