"""`hyperirl sweep`: many runs, over settings and seeds."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command
from hyperirl.cli.cells import cell_runner
from hyperirl.cli.settings import Settings
from hyperirl.options import Options


@command
class Sweep:
    """Learn with all combinations of some settings, each with several seeds.

    Runs are kept in OUT/runs. What is finished is not run again, so the same command
    goes on after it was stopped. The exit code is 1 if runs failed.

    For example:
        hyperirl sweep --env lqr --set damping=0.1,1 --seeds 3 --out runs/damping
        hyperirl sweep --set method=fisher,ml-irl --set policy_hidden=32x32,64x64
        hyperirl sweep --env my_module:make_env --demos my_demos.npz --set damping=1,10
        hyperirl sweep --env lqr --set learning_rate=1e-2,3e-2 --ray
    """

    env: str = "cartpole"
    """cartpole, cartpole-fixed, lqr, lqr-clipped, pendulum, tabular, grid-world;
    gym:ID for one of Gymnasium's, gym:MODULE:ID if a module registers it; or your own
    as MODULE:NAME. Modules are imported, also by the processes that learn."""
    demos: Maybe[str] = None
    """A file of demonstrations, or the name of bundled ones; those of the environment
    by default."""
    options: Settings = Options()
    horizon: Maybe[int] = None
    """After how many steps episodes of an environment of Gymnasium's are cut; by
    default as it says."""
    set: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="FIELD=V,V")
    ] = ()
    """A setting and its values; repeat it for others. Sizes are written 32x32."""
    seeds: int = 3
    """Runs of each combination; their seeds follow `--seed`."""
    out: Path = Path("runs/sweep")
    """Folder of the sweep."""
    paper: Flag = False
    """The settings of the paper's authors, where no others are given."""
    workers: Maybe[int] = None
    """Processes at a time; one a core by default."""
    ray: Maybe[tuple[str, ...]] = None
    """Run on Ray instead: on a cluster, if its address is given, or on one started
    here, which only this machine can reach."""
    trust_cluster: Flag = False
    """Join the cluster at that address although its machines could run code here."""

    def run(self) -> None:
        """Does what is not done yet, then compares."""
        from hyperirl.experiments.cell import finished
        from hyperirl.experiments.sweep import sweep_cells

        preset = "paper" if self.paper else "tuned"
        shared: dict[str, Any] = {"env": self.env}
        shared |= {} if self.demos is None else {"demos": self.demos}
        shared |= {} if self.horizon is None else {"horizon": self.horizon}
        cells = sweep_cells(shared, self.options, self.set, self.seeds, preset)
        done = finished(cells, self.out)
        left = [cell for cell in cells if cell.id not in done]
        print(f"{len(cells)} runs, {len(done)} of them done before, in {self.out}")
        run_cells = cell_runner(
            self.out, self.workers, self.ray, "sweep", trusted=self.trust_cluster
        )
        try:
            failed = run_cells(left, False) if left else {}
        except KeyboardInterrupt:
            command = shlex.join(["hyperirl", *sys.argv[1:]])
            print(f"Stopped; nothing finished is lost. Go on:  {command}")
            raise SystemExit(130) from None
        if len(failed) < len(cells):
            print_comparison([self.out])
            print(f"Compare again:  hyperirl compare {self.out}")
        if failed:
            last_words = f"their last words: {self.out / 'logs'}"
            print(f"{len(failed)} of {len(cells)} runs failed; {last_words}")
            raise SystemExit(1)


def print_comparison(paths: list[Path]) -> None:
    """A table in the terminal."""
    from rich.console import Console
    from rich.table import Table

    from hyperirl.experiments.compare import compare

    found = compare(paths)
    table = Table(*found.headings.values(), box=None)
    for row in found.texts():
        table.add_row(*row)
    Console(highlight=False).print(table)
