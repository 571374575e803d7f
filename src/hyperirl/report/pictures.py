"""The learned reward pictured: all that `picture.json` holds."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from hyperirl.report.explaining import draw_along, draw_sensitivity, draw_visits
from hyperirl.report.maps import draw_maps
from hyperirl.report.matrices import draw_matrices
from hyperirl.report.reading import Run
from hyperirl.report.scatter import draw_scatter

_ODD = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


def draw_picture(run: Run) -> str:
    """What `picture.json` of a run shows; nothing if there is none or it is odd."""
    picture = run.picture
    drawers = {"heatmaps": draw_maps, "matrices": draw_matrices}
    parts = [_tolerantly(drawers.get(str(picture.get("kind")), lambda _: ""), picture)]
    figures = [
        _tolerantly(draw, picture[name])
        for name, draw in (
            ("along", draw_along),
            ("sensitivity", draw_sensitivity),
            ("scatter", draw_scatter),
        )
        if isinstance(picture.get(name), dict)
    ]
    if any(figures):
        parts.append(f'<div class="charts three">{"".join(figures)}</div>')
    if isinstance(picture.get("visits"), dict):
        parts.append(_tolerantly(draw_visits, picture["visits"]))
    return "".join(parts)


def _tolerantly(draw: Callable[[Mapping[str, Any]], str], part: Mapping) -> str:
    """A report is not worth losing over one picture."""
    try:
        return draw(part)
    except _ODD as error:
        reason = escape(f"{type(error).__name__}: {error}")
        return f'<p class="note">A picture could not be drawn ({reason}).</p>'
