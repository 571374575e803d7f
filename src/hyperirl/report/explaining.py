"""A reward explained: along an episode, by input, and by where its policy goes."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from hyperirl.report.axes import axis_of, frame, points
from hyperirl.report.numbers import text, thin
from hyperirl.report.tables import column_of
from hyperirl.verdict import number

_WIDTH, _HEIGHT = 440, 260
_MOST_BARS = 12


def draw_along(along: Mapping[str, Any]) -> str:
    """What the steps of an expert's episode are paid, learned above true."""
    curves = {
        name: column_of(along[name])
        for name in ("learned", "true")
        if isinstance(along.get(name), list)
    }
    if _constant(curves.get("true")):
        del curves["true"]
    top, bottom = 12, _HEIGHT - 42
    height = (bottom - top - 22 * (len(curves) - 1)) / len(curves)
    parts = []
    for i, (name, values) in enumerate(curves.items()):
        steps = np.arange(1, len(values) + 1, dtype=float)
        ok = np.isfinite(values)
        start = round(top + height + i * (height + 22))
        x = axis_of(steps, 66, _WIDTH - 14, zero=True)
        y = axis_of(values, start, round(start - height), zero=False)
        last = i == len(curves) - 1
        parts.append(frame(x, y, "step" if last else "", name, most=4))
        line = points(x, y, *thin(steps[ok], values[ok], 240))
        shape = f'<polyline class="line c{i}" points="{line}"/>'
        if ok.sum() == 1:
            place = line.split(",")
            shape = f'<circle class="dots c{i}" cx="{place[0]}" cy="{place[1]}" r="4"/>'
        parts.append(shape)
    return _figure(
        "The reward along an expert's episode",
        f"that was held out; {_beside(along)}".removesuffix("; "),
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="The reward '
        f'along an episode">{"".join(parts)}</svg>',
    )


def _constant(values: np.ndarray | None) -> bool:
    return values is not None and float(np.ptp(values)) == 0


def _beside(along: Mapping[str, Any]) -> str:
    """How learned and true rewards go together."""
    if not isinstance(along.get("true"), list):
        return "the true reward is not known."
    if _constant(true := column_of(along["true"])):
        return f"the true reward is {text(float(np.nanmean(true)))} in every step."
    correlation = number(along.get("correlation"))
    if not np.isfinite(correlation):
        return ""
    return f"over all demonstrated steps their correlation is {text(correlation, 2)}."


def draw_sensitivity(found: Mapping[str, Any]) -> str:
    """A bar for each input, the longest first; nothing for a reward that is a table."""
    if not found:
        return ""
    learned = np.nan_to_num(column_of(found["learned"]))
    names = [str(name) for name in found["names"]]
    shown = min(len(names), _MOST_BARS, len(learned))
    total = learned.sum()
    if not total > 0:
        note = "it is the same for all inputs."
        return _figure("What the reward looks at", note, "")
    true = np.nan_to_num(column_of(found["true"])) if "true" in found else learned * 0
    ours, theirs = learned / total, true / (true.sum() or 1.0)
    left, right, step = 168, _WIDTH - 60, 21
    place = lambda share: left + (right - left) * share / max(ours.max(), theirs.max())
    parts = []
    for i in range(shown):
        y = 4 + i * step
        parts.append(
            f'<text class="end name" x="{left - 8}" y="{y + 13}">'
            f'{escape(_short(names[i]))}</text><rect class="fill c0" x="{left}" '
            f'y="{y}" width="{max(place(ours[i]) - left, 0.5):.1f}" '
            f'height="{step - 6}"/>'
            f'<text x="{place(max(ours[i], theirs[i])) + 8:.1f}" y="{y + 13}">'
            f"{100 * ours[i]:.0f} %</text>"
        )
        if true.any():
            parts.append(
                f'<path class="mark" d="M{place(theirs[i]):.1f} {y - 2}v{step - 2}"/>'
            )
    height = 8 + shown * step
    return _figure(
        "What the reward looks at",
        _share_note(len(names) - shown, "true" in found, bool(true.any())),
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="What the reward looks at">{"".join(parts)}</svg>',
    )


def _share_note(left_out: int, known: bool, any_true: bool) -> str:
    words = (
        "mean slope times the input's spread in the demonstrations: what an ordinary "
        "change of it is worth, as a share of all."
    )
    if known and any_true:
        words += " Upright marks: the true reward."
    elif known:
        words += " The true reward depends on none of them there."
    if left_out > 0:
        words += f" {left_out} smaller ones are not shown."
    return words


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def draw_visits(visits: Mapping[str, Any]) -> str:
    """A small histogram for each input: expert filled, policy as a line."""
    inputs = visits["inputs"]
    if not inputs:
        return ""
    panels = "".join(_histogram(found) for found in inputs)
    left_out = number(visits.get("of", 0)) - len(inputs)
    rest = f" {left_out:.0f} more inputs are not shown." if left_out > 0 else ""
    return (
        '<figure class="visits"><figcaption><b>Where the policy goes</b> shares of all '
        f"steps; the overlap of both is 100 % if they visit the same.{rest}"
        '</figcaption><div class="legend"><span><svg class="key" viewBox="0 0 14 10">'
        '<rect class="fill c0 pale" width="14" height="10"/></svg>the demonstrations'
        '</span><span><svg class="key long" viewBox="0 0 34 8"><path class="line c1" '
        f'd="M1 4H33"/></svg>the run\'s policy</span></div><div class="small">{panels}'
        "</div></figure>"
    )


def _histogram(found: Mapping[str, Any]) -> str:
    edges, expert, agent = (column_of(found[k]) for k in ("edges", "expert", "agent"))
    name, overlap = escape(str(found["name"])), number(found.get("overlap"))
    left, right, top, bottom = 6, 234, 4, 84
    highest = float(max(expert.max(), agent.max()))
    if not highest > 0 or not len(edges) == len(expert) + 1 == len(agent) + 1:
        raise ValueError("a histogram has no steps")
    across = np.linspace(left, right, len(edges))
    outline = lambda shares: "".join(
        f"V{bottom - (bottom - top) * share / highest:.1f}H{x:.1f}"
        for share, x in zip(shares, across[1:], strict=True)
    )
    ends = [text(float(edge), 3) for edge in (edges[0], edges[-1])]
    return (
        f'<div class="panel"><p><b>{name}</b><span class="range">overlap '
        f"{100 * overlap:.0f} %</span></p>"
        f'<svg viewBox="0 0 240 104" role="img" aria-label="{name}"><path class="fill '
        f'c0 pale" d="M{left} {bottom}{outline(expert)}V{bottom}z"/><path class="line '
        f'c1 thin" d="M{left} {bottom}{outline(agent)}V{bottom}"/><path class="axis" '
        f'd="M{left} {bottom}H{right}"/><text x="{left}" y="{bottom + 15}">{ends[0]}'
        f'</text><text class="end" x="{right}" y="{bottom + 15}">{ends[1]}</text></svg>'
        "</div>"
    )


def _figure(title: str, words: str, content: str) -> str:
    return (
        f'<figure class="chart"><figcaption><b>{escape(title)}</b> {escape(words)}'
        f"</figcaption>{content}</figure>"
    )
