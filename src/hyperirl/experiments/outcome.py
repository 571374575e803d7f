"""What an experiment found: tables, a figure, and what to know when reading them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from hyperirl.experiments.numbers import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MANY = 16  # Rows; longer tables are folded on the page.


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of numbers; a value is a number, a word, or a mean with its interval."""

    title: str
    headings: Mapping[str, str]
    """What the values of a row are called, in the order of the columns."""
    rows: Sequence[Mapping[str, Any]]

    def texts(self) -> list[list[str]]:
        """The values as they are read."""
        return [[shown(row.get(key)) for key in self.headings] for row in self.rows]

    def markdown(self) -> str:
        """As a table of GitHub's Markdown."""
        line = lambda words: f"| {' | '.join(w.replace('|', '¦') for w in words)} |"
        head = [line(self.headings.values()), line(["---"] * len(self.headings))]
        return "\n".join([f"### {self.title}", "", *head, *map(line, self.texts())])

    def html(self) -> str:
        """As a part of a page."""
        line = lambda tag, words: "".join(f"<{tag}>{escape(w)}</{tag}>" for w in words)
        rows = [
            f"<tr><th>{escape(first)}</th>{line('td', rest)}</tr>"
            for first, *rest in self.texts()
        ]
        head = f"<tr>{line('th', self.headings.values())}</tr>"
        body = f'<div class="wide"><table class="compare">{head}{"".join(rows)}</table>'
        if len(rows) <= _MANY:
            return f"<h3>{escape(self.title)}</h3>{body}</div>"
        words = f"{escape(self.title)}: {len(rows)} rows"
        return f"<details><summary>{words}</summary>{body}</div></details>"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """All of it."""

    tables: Sequence[Table]
    draw: Callable[["Figure"], None]
    """Draws into an empty figure."""
    size: tuple[float, float]
    """Of the figure, in inches."""
    notes: Sequence[str] = ()
    """What differs from the paper, and what the numbers cannot tell."""
