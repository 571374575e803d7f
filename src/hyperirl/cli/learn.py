"""`hyperirl learn` and `hyperirl resume`: the main job."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hyperirl.cli.arguments import (
    RUNS,
    Flag,
    Maybe,
    command,
    point_latest_to,
    run_path,
)
from hyperirl.cli.events import event_writer
from hyperirl.cli.settings import Settings
from hyperirl.cli.stopping import INTERRUPTED, Stopping
from hyperirl.cli.workers import Workers
from hyperirl.options import Options
from hyperirl.progress import StepProgress

if TYPE_CHECKING:
    from hyperirl.learning import Result, Setup
    from hyperirl.runs import RunFolder


@command
class Learn:
    """Learn a reward from demonstrations.

    For example:
        hyperirl learn
        hyperirl learn --env lqr --method explicit --damping 1.0
        hyperirl learn --env cartpole --demos my_demos.npz --steps 100 --out runs/mine
        hyperirl learn --env my_module:make_env --demos my_demos.npz
        hyperirl learn --env cartpole --method sketch --paper
        hyperirl learn --env lqr --time 30
        hyperirl learn --env gym:Slow-v0 --import slow --demos slow.npz --workers 4
    """

    env: str = "cartpole"
    """cartpole, cartpole-fixed, lqr, lqr-clipped, pendulum, tabular, grid-world;
    gym:ID for one of Gymnasium's; or your own as MODULE:NAME, which is imported."""
    demos: Maybe[str] = None
    """A file of demonstrations, or the name of bundled ones; those of the environment
    by default."""
    options: Settings = Options()
    horizon: Maybe[int] = None
    """After how many steps episodes of an environment of Gymnasium's are cut; by
    default as it says, or as the demonstrations are."""
    scale: tyro.conf.OmitArgPrefixes[Workers] = Workers()
    out: Maybe[Path] = None
    """Folder of the run; must not exist yet. By default a new one under runs/."""
    paper: Flag = False
    """The settings of the paper's authors, where no others are given."""
    log_every: Maybe[int] = None
    """Print a line every so many steps. In a terminal the numbers are shown in place
    by default; elsewhere the steps are silent."""
    json: Flag = False
    """Print only a summary, as JSON."""
    tensorboard: Flag = False
    """Write TensorBoard event files into the run's folder too."""

    def run(self) -> None:
        """Makes the folder, learns, and says where the results are."""
        from hyperirl.learning import create_folder, set_up

        telling = _Telling(self.log_every, self.json, self.tensorboard)
        self.scale.check_counted()
        with self.scale.ready():
            setup = set_up(
                self.env,
                self.demos,
                self.options,
                paper=self.paper,
                horizon=self.horizon,
                workers=self.scale.workers or 0,
                ray=self.scale.on_ray,
            )
            out = _free_folder(setup) if self.out is None else self.out
            folder = create_folder(setup, out, ["hyperirl", *sys.argv[1:]])
            point_latest_to(out)
            _run(setup, folder, telling)


@command
class Resume:
    """Go on with a run that was stopped or killed; its end is the same.

    For example:
        hyperirl resume runs/cartpole-fisher-0
        hyperirl resume runs/mine --env my_module:make_env
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run, or `latest`."""
    env: Maybe[str] = None
    """The environment, if the run was started with one of your own."""
    scale: tyro.conf.OmitArgPrefixes[Workers] = Workers()
    log_every: Maybe[int] = None
    """Print a line every so many steps. In a terminal the numbers are shown in place
    by default; elsewhere the steps are silent."""
    json: Flag = False
    """Print only a summary, as JSON."""
    tensorboard: Flag = False
    """Write TensorBoard event files into the run's folder too."""

    def run(self) -> None:
        """Learns on from the last checkpoint."""
        from hyperirl.learning import reopen
        from hyperirl.runs import RunFolder

        telling = _Telling(self.log_every, self.json, self.tensorboard)
        folder = RunFolder.open(run_path(self.run_folder))
        with self.scale.ready():
            setup = reopen(
                folder,
                task=self.env,
                workers=self.scale.workers,
                ray=self.scale.on_ray,
            )
            if self.scale.workers not in (None, setup.config.workers):
                telling.say(
                    f"Note: the run began with {setup.config.workers} workers; with "
                    f"{self.scale.workers} it ends elsewhere, as with another seed."
                )
            _run(setup, folder, telling)


@dataclasses.dataclass(frozen=True)
class _Telling:
    """What the user wants to hear of a run, and how."""

    log_every: int | None
    json: bool
    tensorboard: bool

    def __post_init__(self):
        if self.log_every is not None and self.log_every < 1:
            raise ValueError(f"`--log-every` must be at least 1, got {self.log_every}.")

    def say(self, words: str) -> None:
        """A line, unless the user wants nothing but JSON."""
        if not self.json:
            print(words, flush=True)


def _run(setup: "Setup", folder: "RunFolder", telling: _Telling) -> None:
    from hyperirl.demos import oddities
    from hyperirl.learning import Stopped, run, shown_steps

    config, out = setup.config, folder.path
    events = event_writer(out) if telling.tensorboard else None
    telling.say(f"Learning a reward for {config.env} by {config.method}, in {out}")
    for oddity in oddities(setup.demos, setup.environment):
        telling.say(f"Note: {oddity}")
    advice = f"Go on:  hyperirl resume {out}"
    total = shown_steps(config)
    progress = StepProgress(total, log_every=telling.log_every, silent=telling.json)
    try:
        with Stopping(advice) as stopping, progress as shown:

            def on_step(row: dict[str, Any]) -> None:
                stopping.unsaved = True
                shown.show(row)
                if events is not None:
                    events(row)

            result = run(setup, folder, on_step=on_step)
    except Stopped as stop:
        done = "Stopped and saved." if stop.saved else "Stopped."
        telling.say(f"{done} {advice}")
        raise SystemExit(INTERRUPTED) from None
    if telling.json:
        print(json.dumps(_summary(out, result), indent=2))
    else:
        _print_end(out, result)


def _summary(out: Path, result: "Result") -> dict[str, Any]:
    """What a script wants to know about a run that has ended."""
    last = result.metrics[-1] if result.metrics else {}
    numbers = ("seconds", "best_nll_valid", "floor_valid", "nll_valid")
    return {
        "folder": str(out),
        "env": result.config.env,
        "method": result.config.method,
        "steps": len(result.metrics),
        **{name: last.get(name) for name in numbers},
        "reward": result.reward is not None,
        "warnings": result.warnings,
    }


def _print_end(out: Path, result: "Result") -> None:
    last = result.metrics[-1] if result.metrics else {}
    floor, best = last.get("floor_valid"), last.get("best_nll_valid")
    if last.get("done", 1.0) < 1:
        print(f"Settled after {len(result.metrics)} outer steps.")
    if best is not None:
        against = "" if floor is None else f" (the expert's own: {floor:.1f})"
        scale = last.get("min_scale")
        limited = "" if scale is None else f", at a scale of at least {scale:.3g}"
        print(f"Best held-out NLL {best:.1f}{against}{limited}.")
    for warning in result.warnings:
        print(f"Warning: {warning}")
    print(f"Results are in {out}")
    if result.reward is not None:
        print(f"Judge the reward:  hyperirl evaluate {out}")
    print(f"See it all:        hyperirl report {out}")


def _free_folder(setup: "Setup") -> Path:
    """`runs/ENV-METHOD-SEED`, numbered if that is taken."""
    config = setup.config
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in config.env)
    first = name = f"{plain}-{config.method}-{config.seed}"
    number = 1
    while (path := RUNS / name).exists():
        number += 1
        name = f"{first}-{number}"
    return path
