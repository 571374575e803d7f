"""`hyperirl learn` and `hyperirl resume`: the main job."""

import dataclasses
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hyperirl.cli.events import event_writer
from hyperirl.cli.progress import StepProgress
from hyperirl.learning.config import LearnConfig

if TYPE_CHECKING:
    from hyperirl.learning import Result


@dataclasses.dataclass(frozen=True)
class Learn:
    """Learn a reward from demonstrations.

    For example:
        hyperirl learn
        hyperirl learn --env lqr --method explicit --damping 1.0
        hyperirl learn --env cartpole --demos my_demos.npz --steps 100 --out runs/mine
        hyperirl learn --env cartpole --method sketch --paper
        hyperirl learn --env lqr --time 30
    """

    config: tyro.conf.OmitArgPrefixes[LearnConfig]
    out: Path | None = None
    """Folder of the run; must not exist yet. By default a new one under runs/."""
    paper: tyro.conf.FlagCreatePairsOff[bool] = False
    """The settings of the paper's authors, where no others are given."""
    tensorboard: tyro.conf.FlagCreatePairsOff[bool] = False
    """Write TensorBoard event files into the run's folder too."""

    def run(self) -> None:
        """Makes the folder, learns, and says where the results are."""
        from hyperirl.learning import check, complete, paper, run
        from hyperirl.runs import RunFolder

        config = complete(paper(self.config) if self.paper else self.config)
        check(config)
        out = _free_folder(config) if self.out is None else self.out
        command = ["hyperirl", *sys.argv[1:]]
        folder = RunFolder.create(out, dataclasses.asdict(config), command)
        _run(out, config, self.tensorboard, lambda on: run(config, folder, on_step=on))


@dataclasses.dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped or killed; its end is the same.

    For example:
        hyperirl resume runs/cartpole-fisher-0
    """

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The folder of the run."""
    tensorboard: tyro.conf.FlagCreatePairsOff[bool] = False
    """Write TensorBoard event files into the run's folder too."""

    def run(self) -> None:
        """Learns on from the last checkpoint."""
        from hyperirl.learning import from_dict, resume
        from hyperirl.runs import RunFolder

        config = from_dict(RunFolder.open(self.run_folder).config)
        job = lambda on: resume(self.run_folder, on_step=on)
        _run(self.run_folder, config, self.tensorboard, job)


def _run(
    out: Path,
    config: LearnConfig,
    tensorboard: bool,
    job: Callable[[Callable[[dict[str, Any]], None]], "Result"],
) -> None:
    events = event_writer(out) if tensorboard else None
    # A polite request to stop is like Ctrl-C: save, say how to go on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"Learning a reward for {config.env} by {config.method}, in {out}")
    try:
        with StepProgress(config.steps) as progress:

            def on_step(row: dict[str, Any]) -> None:
                progress.show(row)
                if events is not None:
                    events(row)

            result = job(on_step)
    except KeyboardInterrupt:
        print(f"Stopped and saved. Go on:  hyperirl resume {out}")
        raise SystemExit(130) from None
    _print_end(out, result)


def _print_end(out: Path, result: "Result") -> None:
    last = result.metrics[-1] if result.metrics else {}
    floor, best = last.get("floor_valid"), last.get("best_nll_valid")
    if best is not None:
        against = "" if floor is None else f" (the expert's own: {floor:.1f})"
        print(f"Best held-out NLL {best:.1f}{against}.")
    for warning in result.warnings:
        print(f"Warning: {warning}")
    print(f"Results are in {out}")
    if result.reward is not None:
        print(f"Judge the reward:  hyperirl evaluate {out}")
    print(f"See it all:        hyperirl report {out}")


def _free_folder(config: LearnConfig) -> Path:
    """`runs/ENV-METHOD-SEED`, numbered if that is taken."""
    name = f"{config.env}-{config.method}-{config.seed}"
    number = 1
    while (path := Path("runs") / name).exists():
        number += 1
        name = f"{config.env}-{config.method}-{config.seed}-{number}"
    return path
