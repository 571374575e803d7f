"""`hyperirl compare`: runs beside each other."""

import json
from pathlib import Path
from typing import Annotated

import tyro

from hyperirl.cli.arguments import Maybe, command, run_path
from hyperirl.cli.sweep import print_comparison


@command
class Compare:
    """Compare runs, or all runs of a sweep: the best held-out likelihood first.

    Runs that differ by their seeds only are one row: mean and 95 % interval.

    For example:
        hyperirl compare runs/first runs/second
        hyperirl compare runs/sweep --out comparison.md
        hyperirl compare runs/sweep --out comparison.json
    """

    folders: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint=""),
    ]
    """Folders of runs, or of sweeps."""
    out: Maybe[Path] = None
    """Also write a file: Markdown (.md) or all numbers (.json)."""

    def run(self) -> None:
        """Prints the table, and writes it if that is asked for."""
        from hyperirl.experiments.compare import compare
        from hyperirl.runs import atomic

        if not self.folders:
            raise ValueError("Give at least one folder of a run or of a sweep.")
        if self.out is not None and self.out.suffix not in (".md", ".json"):
            raise ValueError(f"`--out` must end in .md or .json, got {self.out}.")
        folders = [run_path(path) for path in self.folders]
        print_comparison(folders)
        if self.out is None:
            return
        table = compare(folders)
        text = f"{table.markdown()}\n"
        if self.out.suffix == ".json":
            rows = {"headings": table.headings, "rows": table.rows}
            text = json.dumps(rows, indent=1, allow_nan=False)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(self.out, text.encode())
        print(f"Wrote {self.out}")
