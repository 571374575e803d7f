"""Several runs as one table: a row for each run, and a mean for those that repeat."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from hyperirl.metrics import METRICS
from hyperirl.report.headline import what_is_missing, with_interval
from hyperirl.report.numbers import text
from hyperirl.report.reading import Group, estimate

# Limits stand beside what they limit. Metrics of the rows come last.
HEADINGS: Mapping[str, str] = {
    "policy_nll": "PolicyNLL",
    "floor": "floor",
    "gap_percent": "gap, %",
    "solved_gap_percent": "gap, solved exactly, %",
    "clone_gap": "above a clone",
    "bc_nll": "NLL of cloning",
    "env_return": "EnvReturn",
    "solved_return": "EnvReturn, solved exactly",
    "expert_return": "ExpertRet",
    "random_return": "RandomRet",
    "hard_return": "EnvReturn, the hard way",
    "hard_true_return": "the hard way on the true reward",
    "rank_corr": "RankCorr",
    "rank_corr_constant": "RankCorr, constant reward",
    "rank_corr_untrained": "RankCorr, untrained reward",
    "epic_distance": "EPIC",
    "retraining_ratio": "retraining ratio",
    "valid_gap_percent": "held-out gap, %",
    **{
        name: METRICS[name].title
        for name in (
            "best_nll_valid",
            "floor_valid",
            "true_return",
            "skipped_total",
            "step",
            "seconds",
        )
    },
}
"""What a number about a run as a whole is called at the head of a column."""


def draw_comparison(groups: Sequence[Group]) -> str:
    """A row for each run, and one for each group of seeds; empty columns left out."""
    runs = [run for group in groups for run in group.runs]
    columns = [
        (key, heading)
        for key, heading in HEADINGS.items()
        if any(estimate(run, key).known for run in runs)
    ]
    rows = []
    for index, group in enumerate(groups):
        key = f'<i class="swatch c{index % 8}"></i>'
        if len(group.runs) > 1:
            cells = [_draw_mean(group, column) for column, _ in columns]
            rows.append(_draw_row(f"{key}{escape(group.label)}", cells, "mean"))
        for run in group.runs:
            values = [estimate(run, column) for column, _ in columns]
            cells = [with_interval(value) for value in values]
            rows.append(_draw_row(f"{key}{escape(run.name)}", cells))
    headings = "".join(f"<th>{escape(heading)}</th>" for _, heading in columns)
    return (
        f'<div class="wide"><table class="compare"><tr><th>run</th>{headings}</tr>'
        f"{''.join(rows)}</table></div>{what_is_missing(runs)}"
    )


def _draw_row(name: str, cells: list[str], kind: str = "") -> str:
    cells = [f"<td>{cell}</td>" for cell in cells]
    return f'<tr class="{kind}"><th>{name}</th>{"".join(cells)}</tr>'


def _draw_mean(group: Group, key: str) -> str:
    values = np.array([estimate(run, key).mean for run in group.runs])
    values = values[np.isfinite(values)]
    if not len(values):
        return "–"
    mean, low, high = (text(float(f(values))) for f in (np.mean, np.min, np.max))
    if low == high:
        return mean
    return f'{mean} <span class="range">({low} to {high})</span>'
