"""`hyperirl reproduce`: the paper's tables and figures, with ours beside them."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command
from hyperirl.cli.cells import cell_runner
from hyperirl.experiments.reproduce import NAMES, SEEDS, Budget, Name, reproduce


@command
class Reproduce:
    """Run an experiment of the paper, and put our numbers beside its own.

    Writes OUT/NAME/results.json, table.md, figure.svg and figure.png, and adds to
    OUT/report.html. What is finished is not run again, so the same command goes on
    after it was stopped. The exit code is 1 if cells failed.

    For example:
        hyperirl reproduce identities
        hyperirl reproduce damping --budget standard --workers 2
        hyperirl reproduce all --budget quick --out results/quick
        hyperirl reproduce curves --budget full --ray HOST:6379 --trust-cluster
    """

    name: Annotated[Name | Literal["all"], tyro.conf.Positional]
    """Which experiment."""
    budget: Budget = "quick"
    """quick: minutes, to see that it works. standard: five seeds, scaled down. full:
    the paper's own counts."""
    seeds: Maybe[int] = None
    """Repetitions; 1 for quick, 5 for the others."""
    out: Path = Path("results")
    """Folder of all results."""
    workers: Maybe[int] = None
    """Processes at a time; one a core by default. Timed experiments use one."""
    ray: Maybe[tuple[str, ...]] = None
    """Run on Ray instead: on a cluster, if its address is given, or on one started
    here, which only this machine can reach."""
    trust_cluster: Flag = False
    """Join the cluster at that address although its machines could run code here."""

    def run(self) -> None:
        """Does one or all, and says where the results are."""
        seeds = SEEDS[self.budget] if self.seeds is None else self.seeds
        if seeds < 1:
            raise ValueError(f"`--seeds` must be at least 1, got {seeds}.")
        lost = 0
        try:
            for name in NAMES if self.name == "all" else (self.name,):
                began = time.monotonic()
                run_cells = cell_runner(
                    self.out, self.workers, self.ray, name, trusted=self.trust_cluster
                )
                failed = reproduce(name, self.budget, seeds, self.out, run_cells)
                table = (self.out / name / "table.md").read_text()
                print(f"\n{table}\n{name}: {time.monotonic() - began:.0f} s.")
                lost += len(failed)
                if failed:
                    print(
                        f"{len(failed)} cells failed; see {self.out / name / 'logs'}."
                    )
        except KeyboardInterrupt:
            command = shlex.join(["hyperirl", *sys.argv[1:]])
            print(f"Stopped; nothing finished is lost. Go on:  {command}")
            raise SystemExit(130) from None
        print(f"Everything so far is in {self.out / 'report.html'}")
        if lost:
            raise SystemExit(1)
