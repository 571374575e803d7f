"""`hyperirl export`: a reward and a policy for those who have only NumPy."""

from pathlib import Path
from typing import Annotated

import tyro

from hyperirl.cli.arguments import Flag, command, run_path


@command
class Export:
    """Write a reward and a policy as files that need only NumPy.

    For example:
        hyperirl export runs/first --to shared
        hyperirl export reward.npz --to shared --onnx
    """

    source: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_OR_REWARD")
    ]
    """The folder of a run, `latest`, or the file of a reward or of a policy."""
    to: Path
    """The folder to write into. Nothing in it is overwritten."""
    onnx: Flag = False
    """Write .onnx files too; needs the package onnx."""

    def run(self) -> None:
        """Says what was written."""
        from hyperirl.export import export

        for path in export(run_path(self.source), self.to, onnx=self.onnx):
            print(f"Wrote {path}")
        print(f"How to use it:  {self.to / 'README.md'}")
