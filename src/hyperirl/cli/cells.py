"""Cells of experiments while they run: where they run, and a bar."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from hyperirl.cli.importing import imported

if TYPE_CHECKING:
    from hyperirl.experiments.cell import Cell


def cell_runner(
    out: Path,
    workers: int | None,
    ray: tuple[str, ...] | None,
    title: str,
    *,
    trusted: bool = False,
) -> Callable[[Sequence["Cell"], bool], Mapping[str, str]]:
    """Runs cells in processes, or on Ray; returns why some failed, by their ids.

    Args:
        out: The folder of all experiments.
        workers: Processes at a time; one a core by default.
        ray: The address of a cluster; empty to start one here, `None` for processes.
        title: Of the bar.
        trusted: Whether the cluster may run code here.
    """
    from hyperirl.experiments.cluster import check_trusted
    from hyperirl.experiments.pool import default_workers

    if workers is not None and workers < 1:
        raise ValueError(f"`--workers` must be at least 1, got {workers}.")
    if ray is not None and len(ray) > 1:
        raise ValueError(f"`--ray` takes one address, got {' '.join(ray)}.")
    check_trusted(ray[0] if ray else None, trusted)
    check_folder(out)

    def run(cells: Sequence["Cell"], alone: bool) -> Mapping[str, str]:
        from hyperirl.experiments.cluster import run_on_ray
        from hyperirl.experiments.pool import run_in_processes

        failed: dict[str, str] = {}
        with CellProgress(title, len(cells)) as progress:

            def on_done(cell: "Cell", reason: str | None) -> None:
                if reason is not None:
                    failed[cell.id] = reason
                progress.show(cell.id, reason)

            if ray is not None and not alone:  # What is timed stays here.
                address = ray[0] if ray else None
                run_on_ray(
                    cells,
                    out,
                    address=address,
                    on_done=on_done,
                    trusted=trusted,
                    say=progress.say,
                    modules=imported.get(),
                )
            else:
                many = 1 if alone else workers or default_workers()
                run_in_processes(
                    cells, out, workers=many, on_done=on_done, modules=imported.get()
                )
        return failed

    return run


def check_folder(out: Path) -> None:
    """Fails now rather than after an hour."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"Cannot write into {out} ({error.strerror}); choose another `--out`."
        ) from error


class CellProgress:
    """A bar in a terminal; elsewhere a line for each cell."""

    def __init__(self, title: str, total: int):
        self.console = Console(highlight=False)
        self.title, self.total, self.done = title, total, 0
        self.started = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self.bar = Progress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task(title, total=total, words="")

    def __enter__(self) -> "CellProgress":
        if self.console.is_terminal:
            self.bar.start()
        else:
            print(f"{self.title}: {self.total} cells to do", flush=True)
        return self

    def __exit__(self, *_) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    def say(self, words: str) -> None:
        """A line above the bar."""
        self.console.print(words, soft_wrap=True)

    def show(self, name: str, reason: str | None) -> None:
        """One more cell has ended, well or not."""
        self.done += 1
        seconds = time.monotonic() - self.started
        left = seconds / self.done * (self.total - self.done)
        words = f"about {left:.0f} s left"
        if reason is not None:
            self.console.print(f"{name} failed: {reason}", soft_wrap=True)
        if self.console.is_terminal:
            self.bar.update(self.task, completed=self.done, words=words)
        else:
            print(f"{self.done}/{self.total} {name}; {words}", flush=True)
