"""`hyperirl evaluate`: what the reward of a run is worth."""

import json
from pathlib import Path
from typing import Annotated, Any

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command, run_path
from hyperirl.cli.workers import Workers


@command
class Evaluate:
    """Train fresh policies on a learned reward, and measure what it is worth.

    Writes evaluation.json and picture.json into the folder of the run.

    For example:
        hyperirl evaluate latest
        hyperirl evaluate runs/first --seeds 5
        hyperirl evaluate runs/first --budget 300000 --no-transfer
        hyperirl evaluate runs/mine --env my_module:make_env
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run, as `hyperirl learn` printed it; or `latest`."""
    env: Maybe[str] = None
    """The environment, if the run was started with one of your own."""
    seeds: int = 2
    """Fresh policies trained on each reward."""
    budget: Maybe[int] = None
    """Environment steps for each of them; a million by default, or four where it takes
    long to find a way (pendulum, cartpole-fixed)."""
    transfer: bool = True
    """Also train in changed dynamics."""
    scale: tyro.conf.OmitArgPrefixes[Workers] = Workers()
    json: Flag = False
    """Print JSON instead: what evaluation.json holds."""

    def run(self) -> None:
        """Fails before the training if something is missing."""
        from hyperirl.learning import evaluate

        folder = run_path(self.folder)
        with self.scale.ready():
            found = evaluate(
                folder,
                task=self.env,
                seeds=self.seeds,
                budget=self.budget,
                transfer=self.transfer,
                workers=self.scale.workers,
                ray=self.scale.on_ray,
            )
        if self.json:
            print(json.dumps(found, indent=2))
        else:
            _print(folder, found)


# What is printed, and what it is to be read against.
_ROWS = (
    ("PolicyNLL", "policy_nll", "of a fresh policy on held-out episodes"),
    ("floor", "floor", "the expert's own NLL on them"),
    ("gap", "gap", "PolicyNLL - floor; 0 is the best possible"),
    ("gap in percent", "gap_percent", "of the floor"),
    ("  solved exactly", "solved_gap_percent", "by the policy the reward asks for"),
    ("NLL, true reward", "true_reward_nll", "what the same training gets from it"),
    ("NLL, cloning", "bc_nll", "no reward, only a policy"),
    ("EnvReturn", "env_return", "true return of the fresh policy"),
    ("  solved exactly", "solved_return", "by the policy the reward asks for"),
    ("  the hard way", "hard_return", "own starts, no entropy: any library's way"),
    ("  true, hard way", "hard_true_return", "the same training on the true reward"),
    ("ExpertRet", "expert_return", "of the demonstrations"),
    ("RandomRet", "random_return", "of random actions"),
    ("RankCorr", "rank_corr", "1 orders trajectories as the truth does"),
    ("  per step", "rank_corr_per_step", "without the episodes' lengths"),
    ("  without its level", "rank_corr_soft", "the paper's convention"),
    ("  constant reward", "rank_corr_constant", "control: what no reward scores"),
    ("  untrained rewards", "rank_corr_untrained", "control: mean of ten"),
    ("EPIC distance", "epic_distance", "0 is equivalent, 0.71 unrelated"),
    ("retraining ratio", "retraining_ratio", "steps needed; the true reward has 1"),
)


def _print(path: Path, result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "mean", "95 % interval", "", box=None)
    for column in table.columns[1:3]:
        column.justify = "right"
    for title, name, meaning in _ROWS:
        if name in result:  # What is not known is left out.
            table.add_row(title, *_cells(result[name]), meaning)
    for name, found in result.get("transfer", {}).items():
        table.add_row(f"transfer: {name}", *_cells(found["env_return"]), "EnvReturn")
        true = found["true_reward_return"]
        table.add_row("  on the true reward", *_cells(true), "trained there")
    console = Console(highlight=False)
    console.print(f"[bold]{path}[/bold]")
    console.print(table)
    if not result["true_reward"]:
        console.print(
            "The environment does not know its true reward: no returns, no RankCorr, "
            "no EPIC distance, no transfer."
        )
    console.print(f"Wrote {path / 'evaluation.json'}.", soft_wrap=True)
    console.print(f"See it:  hyperirl report {path}", soft_wrap=True)


def _cells(value: dict[str, Any] | float | None) -> tuple[str, str]:
    """A mean and an interval."""
    if value is None:
        return "-", ""
    if not isinstance(value, dict):
        return f"{value:.3f}", ""
    if value["mean"] is None:
        return "-", ""
    if value["low"] is None:
        return f"{value['mean']:.3f}", ""
    return f"{value['mean']:.3f}", f"{value['low']:.3f} to {value['high']:.3f}"
