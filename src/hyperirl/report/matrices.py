"""Rewards that are tables: every number on its color."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from hyperirl.report.numbers import text
from hyperirl.report.style import TINTS
from hyperirl.report.tables import marks_of, table_of


def draw_matrices(picture: Mapping[str, Any]) -> str:
    """The figure; panels of a group have the same colors."""
    panels = picture["panels"]
    tables = [table_of(panel["values"]) for panel in panels]
    groups = [str(panel.get("group", i)) for i, panel in enumerate(panels)]
    largest = {
        group: max(
            float(np.nanmax(np.abs(t)))
            for t, g in zip(tables, groups, strict=True)
            if g == group
        )
        for group in groups
    }
    drawn = [
        _draw(panel, table, largest[group] or 1.0)
        for panel, table, group in zip(panels, tables, groups, strict=True)
    ]
    unseen = any("unseen" in matrix for matrix in drawn)
    note = "Hatched: never demonstrated, so hardly anything was learned there."
    caption = f'<p class="note">{note}</p>' if unseen else ""
    return f'<div class="grid4">{"".join(drawn)}</div>{caption}'


def _draw(panel: Mapping[str, Any], table: np.ndarray, largest: float) -> str:
    seen = marks_of(panel.get("seen"), table.shape)
    seen = np.ones(table.shape, bool) if seen is None else seen
    names = "".join(f"<th>{escape(str(name))}</th>" for name in panel["columns"])
    rows = []
    for name, values, known in zip(panel["rows"], table, seen, strict=True):
        cells = "".join(
            f'<td class="{_tint(value / largest)}{"" if k else " unseen"}">'
            f"{text(value, 3)}</td>"
            for value, k in zip(values, known, strict=True)
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
