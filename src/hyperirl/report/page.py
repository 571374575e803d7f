"""The report as one HTML page."""

import json
import math
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from hyperirl.report.charts import DASHES, draw
from hyperirl.report.comparison import draw_comparison
from hyperirl.report.curves import CURVES, DIAGNOSTICS
from hyperirl.report.film import draw_film
from hyperirl.report.headline import draw_headlines
from hyperirl.report.pictures import draw_picture
from hyperirl.report.reading import Group, Run, estimate, group_runs, read_runs
from hyperirl.report.style import HATCH, SCRIPT, STYLE, head
from hyperirl.runs import atomic

_MAX_PICTURES = 4


def write_report(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Writes the page on some runs, and returns where it is.

    Args:
        folders: Of the runs; several are drawn over each other and compared.
        out: The HTML file; one that is there is replaced.
    """
    html = render([Path(folder) for folder in folders])
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(out, html.encode())
    return out


def render(folders: Sequence[Path]) -> str:
    """The page as text."""
    runs = read_runs(folders)
    groups = group_runs(runs)
    single = len(runs) == 1
    sections = [
        ("Results", draw_headlines(runs[0]) if single else draw_comparison(groups)),
        ("The learned reward", _pictures(runs)),
        ("An episode", draw_film(runs[0]) if single else ""),
        ("Curves", _legend(groups) + _charts(CURVES, groups)),
        ("Diagnostics", _charts(DIAGNOSTICS, groups)),
        ("Repeat it", _commands(runs)),
        ("Settings", _settings(runs)),
        ("Provenance", _provenance(runs)),
    ]
    body = "".join(
        f'<section id="{_anchor(title)}"><h2>{title}</h2>{content}</section>'
        for title, content in sections
        if content
    )
    links = "".join(
        f'<a href="#{_anchor(title)}">{title}</a>'
        for title, content in sections
        if content
    )
    title = escape(_title(runs))
    return (
        f"{head(STYLE, SCRIPT)}<title>{title}</title></head><body><header>"
        f"<h1>{title}</h1><p>{escape(_summary(runs))}</p><nav>{links}</nav></header>"
        f"<main>{_judgement(runs)}{_warnings(runs)}{HATCH}{body}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _title(runs: Sequence[Run]) -> str:
    return runs[0].name if len(runs) == 1 else f"{len(runs)} runs compared"


def _summary(runs: Sequence[Run]) -> str:
    """The settings that say most, where all runs agree on them."""
    words = []
    for key in ("env", "method", "seed", "temperature", "discount"):
        values = {json.dumps(run.config.get(key)) for run in runs}
        if len(values) == 1 and runs[0].config.get(key) is not None:
            words.append(f"{key} {runs[0].config[key]}")
    return " · ".join(words)


def _judgement(runs: Sequence[Run]) -> str:
    """What was learned and what to distrust, before any number."""
    if len(runs) > 1:
        return _best(runs)
    judged = runs[0].judgement
    lead = f'<p class="lead">{escape(judged.sentence)}</p>' if judged.sentence else ""
    if not judged.distrust:
        return lead
    items = "".join(f"<li>{escape(words)}</li>" for words in judged.distrust)
    return f'{lead}<div class="distrust"><b>What to distrust</b><ul>{items}</ul></div>'


def _best(runs: Sequence[Run]) -> str:
    """Which of several runs comes closest to the expert."""
    found = [(estimate(run, "gap_percent").mean, run) for run in runs]
    found = [(gap, run) for gap, run in found if math.isfinite(gap)]
    if not found:
        return ""
    _, best = min(found, key=lambda pair: pair[0])
    words = (
        f"Of {len(found)} evaluated runs, {best.name} comes closest to the expert. "
        f"{best.judgement.sentence}"
    )
    return f'<p class="lead">{escape(words)}</p>'


def _warnings(runs: Sequence[Run]) -> str:
    """A box above everything else, for what must not be overlooked."""
    told = [
        (f"{run.name}: " if len(runs) > 1 else "") + warning
        for run in runs
        for warning in run.warnings
    ]
    items = "".join(f"<li>{escape(words)}</li>" for words in told)
    return f'<ul class="warning" role="alert">{items}</ul>' if items else ""


def _legend(groups: Sequence[Group]) -> str:
    """Buttons that show and hide lines; for a single line there is nothing to say."""
    if len(groups) == 1:
        label = groups[0].label
        many = len(groups[0].runs) > 1
        return f'<p class="note">{escape(label)}: mean and range.</p>' if many else ""
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-s="{index}"><svg class="key '
        f'long" viewBox="0 0 34 8"><path class="line c{index % 8}" stroke-dasharray='
        f'"{DASHES[index % len(DASHES)] or "none"}" d="M1 4H33"/></svg>'
        f"{escape(group.label)}</button>"
        for index, group in enumerate(groups)
    )
    note = "Bands: the range over seeds, or of a long run's neighboring steps."
    return f'<div class="legend">{buttons}</div><p class="note">{note}</p>'


def _charts(charts: Sequence, groups: Sequence[Group]) -> str:
    figures = "".join(draw(chart, groups) for chart in charts)
    return f'<div class="charts">{figures}</div>' if figures else ""


def _pictures(runs: Sequence[Run]) -> str:
    pictures = [(run, draw_picture(run)) for run in runs]
    pictures = [(run, picture) for run, picture in pictures if picture]
    if len(runs) == 1:
        return "".join(picture for _, picture in pictures)
    parts = [
        f"<details{' open' if i == 0 else ''}><summary>{escape(run.name)}</summary>"
        f"{picture}</details>"
        for i, (run, picture) in enumerate(pictures[:_MAX_PICTURES])
    ]
    if left := [run.name for run, _ in pictures[_MAX_PICTURES:]]:
        names = escape(", ".join(left))
        parts.append(f'<p class="note">Not shown, to keep this small: {names}.</p>')
    return "".join(parts)


def _commands(runs: Sequence[Run]) -> str:
    parts = []
    for run in runs:
        command = [str(word) for word in run.provenance.get("command") or []]
        if command:
            name = f"<p>{escape(run.name)}</p>" if len(runs) > 1 else ""
            parts.append(f"{name}<pre>{escape(shlex.join(command))}</pre>")
    if not parts:
        return ""
    note = "Give another <code>--out</code>: a run is never overwritten."
    return f'{"".join(parts)}<p class="note">{note}</p>'


def _settings(runs: Sequence[Run]) -> str:
    parts = []
    if len(runs) > 1:
        keys = list(dict.fromkeys(key for run in runs for key in run.config))
        rows = [(key, [_short(run.config.get(key)) for run in runs]) for key in keys]
        rows = [(key, values) for key, values in rows if len(set(values)) > 1]
        parts.append(_table(runs, rows, "setting that differs"))
    for run in runs:
        config = escape(json.dumps(run.config, indent=2))
        parts.append(
            f"<details{' open' if len(runs) == 1 else ''}><summary>"
            f"config.json{'' if len(runs) == 1 else ' of ' + escape(run.name)}"
            f"</summary><pre>{config}</pre></details>"
        )
    return "".join(parts)


def _provenance(runs: Sequence[Run]) -> str:
    flat = [_flat(run.provenance) for run in runs]
    keys = list(dict.fromkeys(key for facts in flat for key in facts))
    rows = [(key, [_short(facts.get(key)) for facts in flat]) for key in keys]
    return _table(runs, rows, "")


def _flat(provenance: dict[str, Any]) -> dict[str, Any]:
    versions = provenance.get("versions")
    versions = versions if isinstance(versions, dict) else {}
    others = {k: v for k, v in provenance.items() if k not in ("versions", "command")}
    return {**others, **versions}


def _short(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."


def _table(
    runs: Sequence[Run], rows: Sequence[tuple[str, list[str]]], corner: str
) -> str:
    """A row for each fact; runs that agree share a cell."""
    if not rows:
        return ""
    names = "".join(f"<th>{escape(run.name)}</th>" for run in runs)
    head = f"<tr><th>{corner}</th>{names}</tr>" if len(runs) > 1 else ""
    lines = []
    for key, values in rows:
        if len(set(values)) == 1:
            cells = f'<td colspan="{len(runs)}">{escape(values[0])}</td>'
        else:
            cells = "".join(f"<td>{escape(value)}</td>" for value in values)
        lines.append(f"<tr><th>{escape(key)}</th>{cells}</tr>")
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'
