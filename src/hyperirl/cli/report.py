"""`hyperirl report`: runs as one HTML file."""

from pathlib import Path
from typing import Annotated

import tyro

from hyperirl.cli.arguments import Maybe, command, run_path


@command
class Report:
    """Make one HTML file from run folders; several runs are compared.

    Nothing is run again, and the file needs nothing else: send it to anybody.

    For example:
        hyperirl report latest
        hyperirl report runs/first
        hyperirl report runs/fisher runs/ml-irl runs/bc --out comparison.html
    """

    runs: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint=""),
    ]
    """The folders of the runs; `latest` is the newest in runs/."""
    out: Maybe[Path] = None
    """The file to write: report.html in the folder of a single run, or here."""

    def run(self) -> None:
        """Says where the file is."""
        from hyperirl.report import write_report

        runs = [run_path(path) for path in self.runs]
        alone = runs[0] if len(runs) == 1 else Path()
        out = write_report(runs, self.out or alone / "report.html")
        print(f"Wrote {out}. Open it in a browser; it needs no network.")
