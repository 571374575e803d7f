"""The learned reward pictured: heatmaps, matrices and a scatter plot."""

import base64
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from hyperirl.report.numbers import number, text
from hyperirl.report.reading import Run
from hyperirl.report.scatter import draw_scatter
from hyperirl.report.style import TINTS

# Dark blue to yellow: brighter all the way, so it survives a black-and-white printer.
_ANCHORS = np.array([[24, 26, 84], [28, 96, 138], [82, 170, 122], [246, 228, 92]])
_PALETTE = np.stack(
    [
        np.interp(np.linspace(0, 3, 256), np.arange(4), channel)
        for channel in _ANCHORS.T.astype(float)
    ],
    axis=1,
).astype(np.uint8)
_MAX_CELLS = 64


def draw_picture(run: Run) -> str:
    """What `picture.json` of a run shows; nothing if there is none or it is odd."""
    picture = run.picture
    drawers = {"heatmaps": _draw_heatmaps, "matrices": _draw_matrices}
    parts = [_tolerantly(drawers.get(picture.get("kind", ""), lambda _: ""), picture)]
    if isinstance(picture.get("scatter"), dict):
        parts.append(_tolerantly(draw_scatter, picture["scatter"]))
    return "".join(parts)


def _tolerantly(draw: Callable[[Mapping[str, Any]], str], part: Mapping) -> str:
    """A report is not worth losing over one picture."""
    try:
        return draw(part)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = escape(f"{type(error).__name__}: {error}")
        return f'<p class="note">A picture could not be drawn ({reason}).</p>'


def _draw_heatmaps(picture: Mapping[str, Any]) -> str:
    panels = picture["panels"]
    tables = [_table(panel["values"]) for panel in panels]
    groups = [str(panel.get("group", i)) for i, panel in enumerate(panels)]
    figures = []
    for panel, table, group in zip(panels, tables, groups, strict=True):
        shared = [t for t, g in zip(tables, groups, strict=True) if g == group]
        finite = np.concatenate([t[np.isfinite(t)] for t in shared])
        limits = float(finite.min()), float(finite.max())
        figures.append(_draw_heatmap(panel["title"], table, picture, limits))
    return f'<div class="grid4">{"".join(figures)}</div>'


def _table(values: Sequence) -> np.ndarray:
    table = np.array([[number(value) for value in row] for row in values], float)
    if table.ndim != 2 or not np.isfinite(table).any():
        raise ValueError("the values are not a table of numbers")
    return table


def _draw_heatmap(
    title: str, table: np.ndarray, picture: Mapping[str, Any], limits: tuple
) -> str:
    low, high = limits
    share = (table - low) / ((high - low) or 1.0)
    pixels = np.nan_to_num(255 * share).clip(0, 255).astype(np.uint8)
    pixels = pixels[_thinned(len(pixels))][:, _thinned(pixels.shape[1])]
    x, y = picture["x"], picture["y"]
    left, top, width, height = 50, 8, 220, 180
    ends = lambda axis: (number(axis["values"][0]), number(axis["values"][-1]))
    x_low, x_high = (text(end, 3) for end in ends(x))
    y_low, y_high = (text(end, 3) for end in ends(y))
    bar = np.arange(256, dtype=np.uint8)[None, :]
    bottom = top + height
    return (
        f"<figure><figcaption><b>{escape(str(title))}</b></figcaption>"
        f'<svg viewBox="0 0 284 262" role="img" aria-label="{escape(str(title))}">'
        # The first row belongs to the lowest value, which is at the bottom.
        f"{_image(pixels[::-1], left, top, width, height)}"
        f'<text x="{left - 6}" y="{top + 10}" class="end">{y_high}</text>'
        f'<text x="{left - 6}" y="{bottom}" class="end">{y_low}</text>'
        f'<text transform="translate(12 {top + height / 2}) rotate(-90)" '
        f'class="mid name">{escape(str(y["name"]))}</text>'
        f'<text x="{left}" y="{bottom + 15}">{x_low}</text>'
        f'<text x="{left + width}" y="{bottom + 15}" class="end">{x_high}</text>'
        f'<text x="{left + width / 2}" y="{bottom + 15}" class="mid name">'
        f"{escape(str(x['name']))}</text>"
        f"{_image(bar, left, bottom + 26, width, 10)}"
        f'<text x="{left}" y="{bottom + 50}">{text(low, 3)}</text>'
        f'<text x="{left + width}" y="{bottom + 50}" class="end">{text(high, 3)}</text>'
        f'<text x="{left + width / 2}" y="{bottom + 50}" class="mid name">reward</text>'
        "</svg></figure>"
    )


def _thinned(size: int) -> np.ndarray:
    return np.linspace(0, size - 1, min(size, _MAX_CELLS)).round().astype(int)


def _image(pixels: np.ndarray, x: int, y: int, width: int, height: int) -> str:
    data = base64.b64encode(png(pixels)).decode()
    return (
        f'<image x="{x}" y="{y}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )


def png(pixels: np.ndarray) -> bytes:
    """An image file of palette indices: hundreds of rectangles would be far larger."""
    height, width = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"PLTE", _PALETTE.tobytes())
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def _draw_matrices(picture: Mapping[str, Any]) -> str:
    return f'<div class="grid4">{"".join(map(_draw_matrix, picture["panels"]))}</div>'


def _draw_matrix(panel: Mapping[str, Any]) -> str:
    table = _table(panel["values"])
    largest = float(np.nanmax(np.abs(table))) or 1.0
    names = "".join(f"<th>{escape(str(name))}</th>" for name in panel["columns"])
    rows = []
    for name, values in zip(panel["rows"], table, strict=True):
        cells = "".join(
            f'<td class="{_tint(value / largest)}">{text(value, 3)}</td>'
            for value in values
        )
        rows.append(f"<tr><th>{escape(str(name))}</th>{cells}</tr>")
    return (
        f"<figure><figcaption><b>{escape(str(panel['title']))}</b></figcaption>"
        f'<div class="wide"><table class="matrix"><tr><th></th>{names}</tr>'
        f"{''.join(rows)}</table></div></figure>"
    )


def _tint(share: float) -> str:
    """The class of a color: the page's policy allows no colors of one's own."""
    if not math.isfinite(share):
        return ""
    return f"t{TINTS + round(TINTS * max(-1.0, min(1.0, share)))}"
