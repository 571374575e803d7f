"""Line charts as SVG: axes, lines, bands and reference lines.

Lines differ by color and by dash, so that they can be told apart in print and by
people who do not see all colors. The numbers behind a chart are its coordinates: the
script of the page reads them back when the mouse is over it.
"""

import dataclasses
import math
from collections.abc import Sequence
from html import escape

import numpy as np

from hyperirl.metrics import Metric
from hyperirl.report.axes import Axis, axis_of, frame, points
from hyperirl.report.numbers import text, thin
from hyperirl.report.reading import Group

WIDTH, HEIGHT = 440, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 14, 12, 42
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "1 2 6 2", "3 2")


@dataclasses.dataclass(frozen=True)
class Chart:
    """What to draw."""

    metric: Metric
    reference: float | Metric | None = None
    reference_name: str = ""  # Of a value; a metric has one.
    zero: bool = False  # Whether the axis starts at 0.
    if_any: bool = False  # Whether a run that is 0 throughout is left out.


@dataclasses.dataclass(frozen=True)
class Line:
    """One run, or the mean and the range of several."""

    label: str
    index: int
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def lines_of(groups: Sequence[Group], chart: Chart) -> list[Line]:
    """The lines of one chart; groups without its metric are left out."""
    name = chart.metric.name
    lines = []
    for index, group in enumerate(groups):
        columns = [(run.column("step"), run.column(name)) for run in group.runs]
        columns = [(x[ok], y[ok]) for x, y in columns for ok in [np.isfinite(x + y)]]
        columns = [c for c in columns if (c[1].any() if chart.if_any else len(c[1]))]
        if len(columns) == 1:
            lines.append(_single(group.label, index, *columns[0]))
        elif columns:
            lines.append(_many(group.label, index, columns))
    return lines


def _single(label: str, index: int, x: np.ndarray, y: np.ndarray) -> Line:
    """A long run is drawn as its running mean, and the range that it is the mean of."""
    if len(x) < 80:
        return Line(label, index, x, y)
    half = max(2, len(x) // 60)
    padded = np.pad(y, half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    mean, low, high = (f(windows, axis=1) for f in (np.nanmean, np.nanmin, np.nanmax))
    return Line(label, index, x, mean, low, high)


def _many(
    label: str, index: int, columns: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Line:
    """Mean and range over runs, at the steps that at least half of them reached."""
    steps = np.unique(np.concatenate([x for x, _ in columns]))
    table = np.full((len(columns), len(steps)), np.nan)
    for row, (x, y) in zip(table, columns, strict=True):
        row[np.searchsorted(steps, x)] = y
    enough = np.isfinite(table).sum(axis=0) * 2 >= len(columns)
    steps, table = steps[enough], table[:, enough]
    mean, low, high = (f(table, axis=0) for f in (np.nanmean, np.nanmin, np.nanmax))
    return Line(label, index, steps, mean, low, high)


def draw(chart: Chart, groups: Sequence[Group]) -> str:
    """The chart as a figure, or nothing if there is nothing to draw."""
    lines = lines_of(groups, chart)
    if not lines:
        return ""
    limits = _limits(chart, groups)
    values = [v for line in lines for v in (line.y, line.low, line.high)] + [limits]
    y_values = np.concatenate([v for v in values if v is not None])
    x_values = np.concatenate([line.x for line in lines])
    x = axis_of(x_values, _LEFT, WIDTH - _RIGHT, zero=True)
    y = axis_of(y_values, HEIGHT - _BOTTOM, _TOP, log=chart.metric.log, zero=chart.zero)
    most = int(np.clip(320 // len(lines), 40, 160))
    parts = [frame(x, y, "outer step", chart.metric.unit)]
    parts += [
        f'<path class="limit" d="M{x.start} {y.at(limit):.1f}H{x.end}"/>'
        for limit in limits.tolist()
    ]
    parts += [_draw_line(line, x, y, most) for line in lines]
    scale = " ".join(f"{v:.6g}" for v in (x.low, x.high, y.low, y.high))
    return (
        f'<figure class="chart"><figcaption>{_caption(chart, limits)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" data-scale="{scale}" '
        f'data-log="{int(y.log)}" aria-label="{escape(chart.metric.title)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _limits(chart: Chart, groups: Sequence[Group]) -> np.ndarray:
    """What the curve is compared with; equal ones once."""
    if isinstance(chart.reference, Metric):
        key = chart.reference.name
        values = {f"{run.last(key):.6g}" for group in groups for run in group.runs}
        limits = np.array(sorted(float(value) for value in values))
    else:
        limits = np.array([math.nan if chart.reference is None else chart.reference])
    return limits[np.isfinite(limits)][:4]


def _caption(chart: Chart, limits: np.ndarray) -> str:
    """The limits are named here, where they cannot be in the way of a curve."""
    metric, reference = chart.metric, chart.reference
    caption = f"<b>{escape(metric.title)}</b> {escape(metric.meaning)}"
    if not len(limits):
        return caption
    values = ", ".join(text(float(limit)) for limit in limits)
    name = reference.title if isinstance(reference, Metric) else chart.reference_name
    return f"{caption} (dotted: {escape(name)} {values})"


def _draw_line(line: Line, x: Axis, y: Axis, most: int) -> str:
    name, index = escape(line.label), line.index
    parts = [f'<g class="s" data-s="{index}">']
    if line.low is not None and line.high is not None:
        upper = points(x, y, *thin(line.x, line.high, most // 3))
        lower = points(x, y, *thin(line.x, line.low, most // 3))
        backwards = " ".join(reversed(lower.split()))
        parts.append(
            f'<polygon class="band c{index % 8}" points="{upper} {backwards}"/>'
        )
    dash = DASHES[index % len(DASHES)]
    if len(line.x) == 1:  # A line of one point cannot be seen.
        at, up = x.at(float(line.x[0])), y.at(float(line.y[0]))
        parts.append(
            f'<circle class="dots c{index % 8}" cx="{at:.1f}" cy="{up:.1f}" r="4.5"/>'
        )
    parts.append(
        f'<polyline class="line c{index % 8}" stroke-dasharray="{dash or "none"}" '
        f'data-n="{name}" points="{points(x, y, *thin(line.x, line.y, most))}"/></g>'
    )
    return "".join(parts)
