"""A reward over two inputs: one map for each action, and the true one beside them.

All maps have the same colors, so that the same color is the same reward. What is far
from every demonstration is hatched: nothing was learned there.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from hyperirl.report.axes import Axis
from hyperirl.report.numbers import text
from hyperirl.report.png import image
from hyperirl.report.tables import column_of, marks_of, table_of

_LEFT, _TOP, _SIDE, _HEIGHT = 54, 6, 216, 176
_MAX_CELLS, _MAX_POINTS = 64, 300
_FLAT = 1e-6  # Relative spread of what is constant.
_ALIKE = 0.2  # Of a scale at least, to be read on it.


@dataclasses.dataclass(frozen=True)
class _Panel:
    title: str
    group: str
    table: np.ndarray

    @property
    def constant(self) -> bool:
        """Whether there is one value only, up to rounding."""
        finite = self.table[np.isfinite(self.table)]
        return float(np.ptp(finite)) <= _FLAT * max(float(np.abs(finite).max()), 1e-12)


@dataclasses.dataclass(frozen=True)
class _Scale:
    """The values that have colors: those near demonstrations."""

    low: float
    high: float

    def __or__(self, other: "_Scale") -> "_Scale":
        return _Scale(min(self.low, other.low), max(self.high, other.high))

    @property
    def span(self) -> float:
        return self.high - self.low


def draw_maps(picture: Mapping[str, Any]) -> str:
    """The figure; the package's docstring says what `picture` holds."""
    panels = [_panel(panel) for panel in picture["panels"]]
    first = panels[0].group
    panels.sort(key=lambda panel: panel.group != first)  # The truth after it.
    shape = panels[0].table.shape
    inside = marks_of(picture.get("inside"), shape)
    x, y = (_axis(picture[name]["values"]) for name in "xy")
    x_axis = Axis(*x, _LEFT, _LEFT + _SIDE)
    y_axis = Axis(*y, _TOP + _HEIGHT, _TOP)
    names = str(picture["x"]["name"]), str(picture["y"]["name"])
    over = _outside(inside) + _points(picture.get("seen"), x_axis, y_axis)
    scales = _scales(panels, inside)
    figures = "".join(
        _draw(panel, scales.get(panel.group), x_axis, y_axis, names, over)
        for panel in _once(panels)
    )
    bar = _bar(scales, panels, inside)
    caption = _caption(picture, panels, inside)
    return (
        f'<figure class="maps"><figcaption>{caption}</figcaption>'
        f'<div class="grid4">{figures}</div>{bar}</figure>'
    )


def _panel(panel: Mapping[str, Any]) -> _Panel:
    title = str(panel["title"])
    group = str(panel.get("group") or title.partition(",")[0])
    return _Panel(title, group, table_of(panel["values"]))


def _once(panels: Sequence[_Panel]) -> list[_Panel]:
    """A reward that is the same number for every action is drawn once."""
    shown = {}
    for panel in panels:
        key = panel.title
        if panel.constant:
            key = panel.group, text(float(np.nanmean(panel.table)))
        if key in shown:
            panel = dataclasses.replace(shown[key], title=f"{panel.group}, any action")
        shown[key] = panel
    return list(shown.values())


def _axis(values: Sequence) -> tuple[float, float]:
    """From the outer edge of the first cell to that of the last."""
    places = column_of(values)
    half = (places[-1] - places[0]) / max(len(places) - 1, 1) / 2
    if not half > 0:
        raise ValueError("an axis does not go up")
    return float(places[0] - half), float(places[-1] + half)


def _scales(panels: Sequence[_Panel], inside: np.ndarray | None) -> dict[str, _Scale]:
    """A scale for each group: the same one, if all groups can be read on it."""
    found: dict[str, _Scale] = {}
    for panel in panels:
        if panel.constant:
            continue
        values = panel.table if inside is None else panel.table[inside]
        values = values[np.isfinite(values)]
        if not len(values) or np.ptp(values) == 0:
            values = panel.table[np.isfinite(panel.table)]
        scale = _Scale(float(values.min()), float(values.max()))
        found[panel.group] = found.get(panel.group, scale) | scale
    if len(found) > 1:
        first, *others = found.values()
        for scale in others:
            first = first | scale
        if min(scale.span for scale in found.values()) >= _ALIKE * first.span:
            return dict.fromkeys(found, first)
    return found


def _draw(
    panel: _Panel,
    scale: _Scale | None,
    x: Axis,
    y: Axis,
    names: tuple[str, str],
    over: str,
) -> str:
    title, right, bottom = escape(panel.title), _LEFT + _SIDE, _TOP + _HEIGHT
    if panel.constant or scale is None:
        value = text(float(np.nanmean(panel.table)), 3)
        inner = (
            f'<rect class="flat" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" '
            f'height="{_HEIGHT}"/><text class="mid name" x="{_LEFT + _SIDE / 2}" '
            f'y="{_TOP + _HEIGHT / 2 + 4}">{value} everywhere</text>'
        )
    else:
        share = (panel.table - scale.low) / scale.span
        pixels = np.nan_to_num(255 * share).clip(0, 255).astype(np.uint8)
        pixels = pixels[_thinned(len(pixels))][:, _thinned(pixels.shape[1])]
        # The first row belongs to the lowest value, which is at the bottom.
        inner = image(pixels[::-1], _LEFT, _TOP, _SIDE, _HEIGHT)
        inner += _cells(~np.isfinite(panel.table), "flat") + over
    ticks = "".join(
        f'<path class="tick" d="M{x.at(tick):.1f} {bottom}v4"/><text class="mid" '
        f'x="{x.at(tick):.1f}" y="{bottom + 17}">{text(tick, 3)}</text>'
        for tick in x.ticks(4)
    )
    ticks += "".join(
        f'<path class="tick" d="M{_LEFT} {y.at(tick):.1f}h-4"/><text class="end" '
        f'x="{_LEFT - 7}" y="{y.at(tick) + 4:.1f}">{text(tick, 3)}</text>'
        for tick in y.ticks(4)
    )
    return (
        f'<div class="panel"><b>{title}</b><svg viewBox="0 0 284 222" role="img" '
        f'aria-label="{title}">{inner}<path class="axis" d="M{_LEFT} {_TOP}H{right}'
        f'V{bottom}H{_LEFT}z"/>{ticks}<text class="mid name" '
        f'x="{_LEFT + _SIDE / 2}" y="{bottom + 35}">{escape(names[0])}</text>'
        f'<text class="mid name" transform="translate(12 {_TOP + _HEIGHT / 2}) '
        f'rotate(-90)">{escape(names[1])}</text></svg></div>'
    )


def _thinned(size: int) -> np.ndarray:
    return np.linspace(0, size - 1, min(size, _MAX_CELLS)).round().astype(int)


def _outside(inside: np.ndarray | None) -> str:
    if inside is None:
        return ""
    return _cells(~inside, "veil") + _cells(~inside, "hatch")


def _cells(marked: np.ndarray, kind: str) -> str:
    """Cells as one shape: neighbors in a row are joined."""
    rows, columns = marked.shape
    width, height = _SIDE / columns, _HEIGHT / rows
    parts = []
    for i, row in enumerate(marked):
        steps = np.diff(np.concatenate([[0], row.astype(int), [0]]))
        starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        top = _TOP + _HEIGHT - (i + 1) * height
        parts += [
            f"M{_LEFT + a * width:.1f} {top:.1f}h{(b - a) * width:.1f}v{height:.1f}"
            f"h{(a - b) * width:.1f}z"
            for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    return f'<path class="{kind}" d="{"".join(parts)}"/>' if parts else ""


def _points(seen: Any, x: Axis, y: Axis) -> str:
    """Where demonstrations were."""
    if not isinstance(seen, Mapping):
        return ""
    across, up = column_of(seen["x"]), column_of(seen["y"])
    ok = np.flatnonzero(np.isfinite(across + up))
    ok = ok[np.linspace(0, len(ok) - 1, min(len(ok), _MAX_POINTS)).astype(int)]
    places = zip(x(across[ok]), y(up[ok]), strict=True)
    path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places)
    return f'<path class="seen rim" d="{path}"/><path class="seen" d="{path}"/>'


def _bar(
    scales: Mapping[str, _Scale], panels: Sequence[_Panel], inside: np.ndarray | None
) -> str:
    """The colors and the rewards they stand for."""
    if not scales:
        return ""
    names: dict[_Scale, list[str]] = {}
    for group, scale in scales.items():
        names.setdefault(scale, []).append(group)
    width, left, rows = 420, 110, []
    for i, (scale, groups) in enumerate(names.items()):
        below, above = (
            any(test(panel, scale) for panel in panels if panel.group in groups)
            for test in (
                lambda p, s: np.nanmin(p.table) < s.low,
                lambda p, s: np.nanmax(p.table) > s.high,
            )
        )
        middle = (scale.low + scale.high) / 2
        label = "reward" if len(names) == 1 else f"{groups[0]} reward"
        rows.append(
            f'<text class="end name" x="{left - 10}" y="{30 + 17 * i}">'
            f'{escape(label)}</text><text x="{left}" y="{30 + 17 * i}">'
            f'{"≤ " * below}{text(scale.low, 3)}</text><text class="mid" '
            f'x="{left + width / 2}" y="{30 + 17 * i}">{text(middle, 3)}</text>'
            f'<text class="end" x="{left + width}" y="{30 + 17 * i}">'
            f"{'≥ ' * above}{text(scale.high, 3)}</text>"
        )
    colors = image(np.arange(256, dtype=np.uint8)[None, :], left, 2, width, 11)
    return (
        f'<svg class="bar" viewBox="0 0 {left + width + 10} {20 + 17 * len(names)}">'
        f"{colors}{''.join(rows)}</svg>"
    )


def _caption(
    picture: Mapping[str, Any], panels: Sequence[_Panel], inside: np.ndarray | None
) -> str:
    words = ["<b>The reward over two inputs</b>"]
    if isinstance(picture.get("others"), str):
        words.append(f"the other inputs are at {escape(picture['others'])}.")
    if isinstance(picture.get("seen"), Mapping):
        words.append("Points: demonstrated states, whatever their other inputs.")
    if inside is not None and not inside.all():
        words.append("Hatched: no demonstration was near, so nothing was learned.")
    scales = _scales(panels, inside)
    if len(set(scales.values())) > 1:
        words.append(
            "Learned and true reward differ too much in size for one scale: each is "
            "read on its own line below the colors."
        )
    else:
        words.append("One scale of colors for all maps.")
    return " ".join(words)
