"""A bar for something that takes minutes: how much is done, and a few words."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def progress_bar(title: str, words: str = "") -> Iterator[Callable[[float, str], None]]:
    """Gives a function to call with the share that is done, and words.

    The bar is gone in the end, and never there where nobody looks: outside a terminal.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    unseen = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=unseen) as bar:
        task = bar.add_task(title, total=1.0, words=words)
        yield lambda done, words: bar.update(task, completed=done, words=words)
