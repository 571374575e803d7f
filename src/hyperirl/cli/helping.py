"""Help that fits into the terminal, and the list of all commands."""

import contextlib
import inspect
import io
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

_AS_IT_IS = "╭│╰\x1b"  # Boxes, which are drawn to the width, and colors.


def asks_for_help(args: Sequence[str]) -> bool:
    """Whether some words ask for help and not for work."""
    return "-h" in args or "--help" in args


def names(command: Any) -> dict[str, type]:
    """The classes of a union of commands, by the names they are called by."""
    pairs = [get_args(kind) for kind in get_args(command)]
    return {said.name: kind for kind, said in pairs}


def listing(kinds: Mapping[str, type]) -> str:
    """A line for each command: its name, and the first sentence of its help."""
    lines = []
    for name, kind in kinds.items():
        words = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
        lines += [f"  {name:10} {' '.join(words.split())}"]
    return "\n".join(lines)


def fit(text: str, columns: int) -> str:
    """Wraps the lines that are too long.

    What a line begins with (spaces; a name and spaces) is not repeated, but the lines
    that follow are as far to the right as its words.
    """
    fitted: list[str] = []
    for line in text.splitlines():
        if len(line) <= columns or any(character in line for character in _AS_IT_IS):
            fitted += [line]
            continue
        words = line.lstrip()
        indent = len(line) - len(words)
        _, gap, rest = words.partition("  ")
        indent += len(words) - len(rest.lstrip()) if gap else 4 * (indent > 0)
        fitted += textwrap.wrap(
            line,
            columns,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "".join(f"{line}\n" for line in fitted)


class _Shown(io.StringIO):
    """Text that is on its way to the terminal, and may have its colors."""

    def __init__(self, out: Any):
        super().__init__()
        self._out = out

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Boxes are drawn in ASCII unless it is `utf-8`."""
        return (self._out.encoding or "").lower()

    def isatty(self) -> bool:
        return self._out.isatty()


@contextlib.contextmanager
def fitted() -> Iterator[None]:
    """What is printed meanwhile fits into the terminal."""
    out = sys.stdout
    shown = _Shown(out)
    try:
        with contextlib.redirect_stdout(shown):
            yield
    finally:
        out.write(fit(shown.getvalue(), shutil.get_terminal_size().columns))
