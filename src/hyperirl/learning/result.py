"""What a run has learned."""

import dataclasses
from pathlib import Path
from typing import Any

from hyperirl.demos import Demos
from hyperirl.learning.config import Config
from hyperirl.metrics import METRICS
from hyperirl.policies import AbstractPolicy
from hyperirl.rewards import AbstractReward
from hyperirl.runs import RunFolder
from hyperirl.saving import save_reward
from hyperirl.tasks import Task
from hyperirl.verdict import warnings_of

_PLOTTED = ("nll_valid", "outer_loss", "true_return", "rank_corr", "inner_gap", "snr")


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """What was learned, and all that is needed to repeat it."""

    reward: AbstractReward | None
    """The learned reward `r(observation, action)`, which stands on its own; none for
    behavioral cloning. `reward.soft` is it in the paper's convention."""
    policy: AbstractPolicy
    """The policy that goes with it."""
    config: Config
    metrics: list[dict[str, Any]]
    """A row for each outer step: `pandas.DataFrame(result.metrics)` is a table."""
    task: Task
    demos: Demos
    folder: RunFolder | None = None
    """Where the run is kept, if it is."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the run, in sentences; nothing if all went well."""
        config = self.config
        return warnings_of(
            self.metrics, temperature=config.temperature, discount=config.discount
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Writes the reward to a file that `hyperirl.load_reward` reads."""
        if self.reward is None:
            raise ValueError(
                "Behavioral cloning learns no reward, so there is none to save; learn "
                "with another method, or save the policy."
            )
        metadata = self.config.to_json()
        save_reward(self.reward, path, metadata=metadata, overwrite=overwrite)

    def __repr__(self) -> str:
        last = self.metrics[-1] if self.metrics else {}
        lines = [
            f"{self.config.env} learned by {self.config.method}: "
            f"{len(self.metrics)} outer steps, {last.get('seconds', 0.0):.0f} s"
        ]
        if last.get("done", 1.0) < 1:
            lines.append("it had settled before all steps were done")
        best, floor = last.get("best_nll_valid"), last.get("floor_valid")
        if best is not None:
            against = "" if floor is None else f" (the expert's own: {floor:.1f})"
            lines.append(f"best held-out NLL {best:.1f}{against}")
        if (scale := last.get("min_scale")) is not None:
            lines.append(f"at a scale of actions of at least {scale:.3g}")
        if self.reward is not None:
            lines.append(f"reward: {type(self.reward.soft).__name__}")
        if self.folder is not None:
            lines.append(f"kept in {self.folder.path}")
        return "\n  ".join([*lines, *self.warnings])

    def plot(self) -> Any:
        """The curves of the run, as a figure of matplotlib."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ValueError(
                "Plots need matplotlib, which is not installed; run "
                "`pip install 'hyperirl[figures]'`."
            ) from error
        rows = self.metrics
        steps = METRICS["step"].column(rows)
        known = [name for name in _PLOTTED if any(row.get(name) for row in rows)]
        figure = Figure(figsize=(9.0, 2.6 * -(-len(known) // 3)), layout="constrained")
        for place, name in enumerate(known):
            metric = METRICS[name]
            axes = figure.add_subplot(-(-len(known) // 3), 3, place + 1)
            axes.plot(steps, metric.column(rows))
            floor = last_floor(rows)
            if name == "nll_valid" and floor is not None:
                axes.axhline(floor, color="#1b1f24", linestyle=":")
            axes.set(xlabel="outer step", ylabel=metric.unit, title=metric.title)
            if metric.log and (metric.column(rows) > 0).all():
                axes.set_yscale("log")
        return figure


def last_floor(rows: list[dict[str, Any]]) -> float | None:
    """The expert's own NLL, if it is known."""
    return rows[-1].get("floor_valid") if rows else None
