"""A scatter plot: one mark for each trajectory, one shape and color for each group."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from hyperirl.report.axes import axis_of, frame
from hyperirl.verdict import number

_WIDTH, _HEIGHT = 440, 320
_MAX_POINTS = 400
# Paths relative to the point: circle, square, triangle, diamond, cross, triangle.
_MARKS = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "m-3-3h6v6h-6z",
    "m0-4l4 7h-8z",
    "m0-4l4 4l-4 4l-4-4z",
    "m-1-4h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
    "m0 4l4-7h-8z",
)


def draw_scatter(scatter: Mapping[str, Any]) -> str:
    """The figure; the module's docstring says what `scatter` holds."""
    x, y = (np.array([number(v) for v in scatter[axis]], float) for axis in "xy")
    groups = np.array([str(g) for g in scatter.get("groups") or [""] * len(x)])
    shown = _shown(x, y)
    x, y, groups = x[shown], y[shown], groups[shown]
    names = list(dict.fromkeys(groups.tolist()))
    x_axis = axis_of(x, 62, _WIDTH - 14, zero=False)
    y_axis = axis_of(y, _HEIGHT - 42, 12, zero=False)
    parts = [frame(x_axis, y_axis, str(scatter["x_name"]), str(scatter["y_name"]))]
    for index, name in enumerate(names):
        members = groups == name
        mark = _MARKS[index % len(_MARKS)]
        places = zip(x_axis(x[members]), y_axis(y[members]), strict=True)
        path = "".join(f"M{a:.1f} {b:.1f}{mark}" for a, b in places)
        parts.append(f'<path class="dots c{index % 8}" d="{path}"/>')
    title = f"{scatter['y_name']} against {scatter['x_name']}"
    return (
        f'<figure class="chart"><figcaption><b>{escape(title)}</b> '
        f'one mark for each trajectory</figcaption><svg role="img" viewBox="0 0 '
        f'{_WIDTH} {_HEIGHT}" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        f"{_legend(names)}</figure>"
    )


def _shown(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points are drawn: the finite ones, evenly thinned if they are many."""
    finite = np.flatnonzero(np.isfinite(x + y))
    if not len(finite):
        raise ValueError("there is no finite point")
    count = min(len(finite), _MAX_POINTS)
    return finite[np.linspace(0, len(finite) - 1, count).astype(int)]


def _legend(names: list[str]) -> str:
    if names == [""]:
        return ""
    entries = "".join(
        f'<span><svg class="key" viewBox="-6 -6 12 12"><path class="dots c{i % 8}" '
        f'd="M0 0{_MARKS[i % len(_MARKS)]}"/></svg>{escape(name)}</span>'
        for i, name in enumerate(names)
    )
    return f'<div class="legend">{entries}</div>'
