"""PolicyNLL, EnvReturn and RankCorr over wall-clock on LQR: the paper's last figure.

From the tuned runs of `final-performance`, which are shared, not repeated.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hyperirl.experiments import figures, titles
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.numbers import over_seeds
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.experiments.tuned import METHODS, group, is_final, tuned_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Learning over wall-clock time (LQR)"
ALONE = False

_PANELS = {
    "nll_valid": f"held-out {titles.HEADINGS['policy_nll']}, nats",
    "true_return": titles.HEADINGS["env_return"],
    "rank_corr": titles.HEADINGS["rank_corr"],
}
_SHARES = (0.25, 0.5, 1.0)


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """The tuned runs of `final-performance` on LQR."""
    return tuned_cells("lqr", METHODS, budget, seeds, done)


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """Where each method is after parts of the time."""
    groups = group(cells, done, "tuned")
    methods = [method for method in METHODS if ("lqr", method) in groups]
    limit = max(
        (c.settings["config"].get("time", 0.0) for c in cells if is_final(c)),
        default=0.0,
    )
    rows = []
    for method in methods:
        results = groups["lqr", method]
        row: dict[str, Any] = {"method": titles.METHODS[method]}
        for key in _PANELS:
            for share in _SHARES:
                row[f"{key}_{share}"] = over_seeds(
                    _at(result, key, share * limit) for result in results
                )
        row["steps"] = over_seeds(len(result["rows"]["step"]) for result in results)
        rows.append(row)
    headings = {"method": "method"} | {
        f"{key}_{share}": f"{title} after {share * limit:g} s"
        for key, title in _PANELS.items()
        for share in _SHARES
    }
    table = Table("On the way", headings | {"steps": titles.STEPS}, rows)
    floors = [
        r["rows"]["floor_valid"][-1] for results in groups.values() for r in results
    ]
    draw = lambda figure: _draw(figure, groups, methods, floors)
    notes = [
        "The paper shows this figure without numbers, for 20,000 s. Here the policy is "
        "the one inside the learning loop, as in the paper's figure, and time stands "
        "still while a program is compiled. Bands are the range over seeds.",
        "A method that diverged has no more points; cloning has a single one.",
    ]
    return Outcome([table], draw, (10.0, 3.4), notes)


def _at(result: Result, key: str, seconds: float) -> float | None:
    """The last value before a time; the first one if there is none."""
    rows = result["rows"]
    pairs = zip(rows["learned_seconds"], rows[key], strict=True)
    known = [(time, value) for time, value in pairs if value is not None]
    if not known:
        return None
    before = [value for time, value in known if time <= seconds]
    return before[-1] if before else known[0][1]


def _draw(figure: "Figure", groups, methods: Sequence[str], floors) -> None:
    for axes, (key, title) in zip(
        figure.subplots(1, len(_PANELS)), _PANELS.items(), strict=True
    ):
        for index, method in enumerate(methods):
            curves = []
            for result in groups["lqr", method]:
                rows = result["rows"]
                pairs = zip(rows["learned_seconds"], rows[key], strict=True)
                known = [pair for pair in pairs if pair[1] is not None]
                curves.append(tuple(zip(*known, strict=True)) if known else ((), ()))
            if method == "bc":
                ends = [y[-1] for _, y in curves if y]
                if ends:
                    level = sum(ends) / len(ends)
                    axes.axhline(
                        level,
                        color=figures.COLORS[index % len(figures.COLORS)],
                        label=titles.SHORT[method],
                    )
            else:
                figures.band(axes, index, titles.METHODS[method], curves)
        if key == "nll_valid" and floors and floors[0] is not None:
            mean = sum(floors) / len(floors)
            axes.axhline(mean, color="#1b1f24", linestyle=":", label="floor")
            axes.set_yscale("log")
        if key == "true_return":
            figures.compress_beyond(axes, 100.0)
            axes.set_ylim(top=0.0)  # The reward is a cost.
        axes.set(xlabel="seconds of learning", ylabel=title)
    # Above all panels: inside the first it would hide a method that diverged.
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=len(lines[0]), fontsize=8)
