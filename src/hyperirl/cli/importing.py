"""`--import MODULE`: modules that register environments, before anything else."""

import contextvars
import importlib
import os
import sys

# What was named on the command line, for processes that do a part of its work.
imported: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar(
    "imported", default=()
)


def import_modules(args: list[str]) -> list[str]:
    """Imports what the user names by `--import`; returns the other arguments."""
    others, names = [], []
    words = iter(args)
    for word in words:
        option, equals, value = word.partition("=")
        if option != "--import":
            others.append(word)
        else:
            names.append(value if equals else next(words, ""))
    if names:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, ValueError) as error:
            print(
                f"hyperirl: Cannot import {name!r} ({error}); start the command in the "
                "folder of that module, or install it.",
                file=sys.stderr,
            )
            raise SystemExit(2) from None
    imported.set(tuple(names))
    return others
