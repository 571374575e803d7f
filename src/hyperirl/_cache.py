"""A compilation cache that mends itself.

JAX writes an entry of its cache in place and never again. One that a kill tore would be
complained about, and compiled again, in every process from then on. Here the first
complaint becomes a sentence, the others nothing, and the entry is removed: what JAX
compiles next takes its place.
"""

import contextlib
import glob
import re
import warnings
from pathlib import Path

_COMPLAINT = re.compile(r"Error reading persistent compilation cache entry for '(.+?)'")


def mend(folder: Path) -> None:
    """From now on, damaged entries of this folder are removed when they are met."""
    show, told = warnings.showwarning, []

    def showwarning(message, category, filename, lineno, file=None, line=None):
        found = _COMPLAINT.match(str(message))
        if found is None:
            return show(message, category, filename, lineno, file, line)
        for entry in folder.glob(f"{glob.escape(found[1])}-*-cache"):
            with contextlib.suppress(OSError):
                entry.unlink()
        if not told:
            told.append(True)
            words = f"Damaged programs in {folder} are compiled again and replaced."
            show(UserWarning(words), UserWarning, "hyperirl", 0, file, "")

    warnings.showwarning = showwarning
