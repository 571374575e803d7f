"""`hyperirl watch`: the report of a run while it runs."""

from pathlib import Path
from typing import Annotated

import tyro

from hyperirl.cli.arguments import command, run_path


@command
class Watch:
    """Show the report of a running run in a browser, drawn anew every few seconds.

    Only this machine can see it. Ctrl-C ends it, and the run goes on.

    For example:
        hyperirl watch latest
        hyperirl watch runs/first --port 9000 --every 30
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run, or `latest`."""
    port: int = 8017
    """Where to listen; 0 takes a port that is free."""
    every: int = 5
    """Seconds until the page is drawn again."""

    def run(self) -> None:
        """Serves until it is interrupted."""
        from hyperirl.report import ReportServer

        folder = run_path(self.folder)
        with ReportServer(folder, self.port, every=self.every) as server:
            print(f"Open {server.url} in a browser; Ctrl-C ends this.", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print(f"\nStopped watching {folder}.")
