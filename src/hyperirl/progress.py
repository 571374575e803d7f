"""How far something is: the numbers of a run while it runs, and a plain bar."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

from hyperirl.metrics import METRICS

# What is shown, in this order, and how it is written.
_NUMBERS = {
    "nll_valid": "{:.2f}",
    "floor_valid": "{:.2f}",
    "best_nll_valid": "{:.2f}",
    "min_scale": "{:.3g}",
    "outer_loss": "{:.3f}",
    "true_return": "{:.1f}",
    "rank_corr": "{:.3f}",
    "inner_gap": "{:.3g}",
    "snr": "{:.1f}",
    "damping": "{:.2g}",
    "step_seconds": "{:.2f} s",
}


class StepProgress:
    """Shows a row of metrics after each outer step.

    In a terminal the numbers stay in place under a bar. Elsewhere it says that programs
    are compiled and how long that took, and no more. With `log_every` it prints a line
    every so many steps instead, wherever it is.
    """

    def __init__(
        self,
        total: int | None,
        console: Console | None = None,
        *,
        log_every: int | None = None,
        silent: bool = False,
    ):
        self.of_total = "" if total is None else f"/{total}"
        self.console = Console(highlight=False) if console is None else console
        self.live = Live(console=self.console, transient=True, refresh_per_second=4)
        self.log_every, self.silent = log_every, silent
        self.in_place = self.console.is_terminal and log_every is None and not silent
        self.first: tuple[float, float] | None = None

    def __enter__(self) -> "StepProgress":
        self.started = time.monotonic()
        if self.in_place:
            self.live.start()
            self.live.update("Compiling ...")
        elif not self.silent:
            print("Compiling ...", flush=True)
        return self

    def __exit__(self, *_) -> None:
        if self.in_place:
            self.live.stop()

    def show(self, row: dict[str, Any]) -> None:
        """The numbers of one step."""
        if self.silent:
            return
        if self.first is None and not self.in_place:
            seconds = time.monotonic() - self.started
            print(f"First step done after {seconds:.0f} s.", flush=True)
        left = self._time_left(row["done"])
        step = f"step {row['step']}{self.of_total}"
        if self.in_place:
            self.live.update(self._table(row, step, left))
        elif self.log_every is not None and row["step"] % self.log_every == 0:
            numbers = ", ".join(f"{name} {text}" for name, text in _texts(row))
            print(f"{step}: {numbers}; {left}", flush=True)

    def _table(self, row: dict[str, Any], step: str, left: str) -> Group:
        table = Table.grid(padding=(0, 2))
        for name, text in _texts(row):
            table.add_row(name, text)
        width = min(40, max(8, self.console.width - len(step) - len(left) - 4))
        head = Table.grid(padding=(0, 2))
        head.add_row(step, ProgressBar(1.0, row["done"], width=width), left)
        return Group(head, table)

    def _time_left(self, done: float) -> str:
        """From the pace since the first step, which compiles."""
        now = time.monotonic()
        if self.first is None or done <= self.first[0]:
            self.first = done, now
            return "time left unknown"
        first_share, first_time = self.first
        pace = (now - first_time) / (done - first_share)
        return f"{(1 - done) * pace:.0f} s left"


@contextlib.contextmanager
def showing(
    enabled: bool, total: int | None
) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Gives a function to call with each row of metrics; `None` if not enabled."""
    if not enabled:
        yield None
        return
    with StepProgress(total) as progress:
        yield progress.show


def _texts(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The numbers of a row that are known, as text."""
    known = lambda value: value is not None and math.isfinite(value)
    return [
        (METRICS[name].title, form.format(row[name]))
        for name, form in _NUMBERS.items()
        if known(row.get(name))
    ]


@contextlib.contextmanager
def progress_bar(
    title: str, words: str = "", *, enabled: bool = True
) -> Iterator[Callable[[float, str], None]]:
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
    unseen = not (enabled and console.is_terminal)
    with Progress(*columns, console=console, transient=True, disable=unseen) as bar:
        task = bar.add_task(title, total=1.0, words=words)
        yield lambda done, words: bar.update(task, completed=done, words=words)
