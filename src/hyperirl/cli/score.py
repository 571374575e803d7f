"""`hyperirl score`: what a reward says about episodes."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from hyperirl.cli.arguments import Flag, Maybe, command, run_path

if TYPE_CHECKING:
    from hyperirl.rewards.scoring import Scores

_SHOWN = 10


@command
class Score:
    """Score episodes by a learned reward: its sum, mean and discounted sum.

    For example:
        hyperirl score runs/first cartpole
        hyperirl score reward.npz my_demos.npz --json
    """

    reward: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="REWARD")]
    """The file of a reward, the folder of a run, or `latest`."""
    demos: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DEMOS")]
    """Episodes: a .npz file, or the name of bundled demonstrations."""
    discount: Maybe[float] = None
    """How much the next step is worth, against this one; what the demonstrations say by
    default, or 0.99."""
    json: Flag = False
    """Print JSON instead, with all episodes."""

    def run(self) -> None:
        """Prints, and writes nothing."""
        from hyperirl import demos, saving
        from hyperirl.rewards.scoring import score
        from hyperirl.runs import RunFolder

        path = run_path(self.reward)
        if path.is_dir():
            path = RunFolder.open(path).reward_path
        reward, episodes = saving.load_reward(path), demos.load(self.demos)
        known = episodes.provenance.discount
        usual = 0.99 if known is None else known
        discount = usual if self.discount is None else self.discount
        if not 0 < discount <= 1:
            raise ValueError(f"`--discount` must be in (0, 1], got {discount}.")
        scores = score(reward, episodes.trajectories, discount=discount)
        if self.json:
            print(json.dumps(_plain(scores, discount), indent=2))
        else:
            _print(scores, discount)


def _columns(scores: "Scores", discount: float) -> dict[str, np.ndarray]:
    columns = {
        "steps": scores.lengths,
        "return": scores.returns,
        "per step": scores.per_step,
        f"discounted {discount:g}": scores.discounted,
    }
    true = scores.true_returns
    return columns if true is None else columns | {"true return": true}


def _plain(scores: "Scores", discount: float) -> dict[str, Any]:
    fields = dataclasses.asdict(scores)
    lists = {k: v.tolist() for k, v in fields.items() if v is not None}
    means = {k: float(np.mean(v)) for k, v in lists.items()}
    return {"discount": discount, "mean": means, "episodes": lists}


def _print(scores: "Scores", discount: float) -> None:
    from rich.console import Console
    from rich.table import Table

    columns = _columns(scores, discount)
    table = Table("episode", *columns, box=None)
    for column in table.columns:
        column.justify = "right"
    number = lambda x: f"{x:.4g}" if isinstance(x, float) else str(x)
    rows = list(zip(*(values.tolist() for values in columns.values()), strict=True))
    for i, row in enumerate(rows[:_SHOWN]):
        table.add_row(str(i), *map(number, row))
    if len(rows) > _SHOWN:
        table.add_row("...", *("" for _ in columns))
    table.add_section()
    table.add_row("mean", *(f"{np.mean(values):.4g}" for values in columns.values()))
    table.add_row(
        "deviation", *(f"{np.std(values):.4g}" for values in columns.values())
    )
    console = Console(highlight=False)
    console.print(table)
    if len(rows) > _SHOWN:
        console.print(f"{len(rows)} episodes; `--json` shows them all.")
