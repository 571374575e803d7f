"""One HTML page with a section for each experiment that was done.

Made from `results.json` and `figure.svg` alone; it needs no network.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hyperirl.experiments.outcome import Table
from hyperirl.report.style import STYLE, head
from hyperirl.runs import atomic

_TITLE = "The paper's evaluation, reproduced"


def write_page(out: Path, names: Sequence[str]) -> Path:
    """Writes `report.html` on the experiments found in a folder."""
    found = [name for name in names if (out / name / "results.json").exists()]
    links = "".join(f'<a href="#{name}">{name}</a>' for name in found)
    sections = "".join(_section(out / name) for name in found)
    html = (
        f"{head(STYLE + _OWN_STYLE)}<title>{_TITLE}</title></head><body>"
        f"<header><h1>{_TITLE}</h1><p>Beside every number of the paper, ours; brackets "
        f"are 95 % intervals over seeds.</p><nav>{links}</nav></header>"
        f"<main>{sections}</main></body></html>\n"
    )
    path = out / "report.html"
    atomic.write_bytes(path, html.encode())
    return path


_OWN_STYLE = """
.figure{background:#fff;max-width:1000px;padding:8px;border-radius:8px}
.figure img{width:100%;height:auto;display:block}
section h3{margin-top:20px}
.compare td,.compare tr:first-child th:not(:first-child){text-align:left}
"""


def _section(folder: Path) -> str:
    found = json.loads((folder / "results.json").read_text())
    image = base64.b64encode((folder / "figure.svg").read_bytes()).decode()
    tables = "".join(Table(**table).html() for table in found["tables"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in found["notes"])
    return (
        f'<section id="{found["name"]}"><h2>{escape(found["title"])}</h2>'
        f'<p class="note">{escape(_about(found))}</p>'
        f'<figure class="figure"><img alt="{escape(found["title"])}" '
        f'src="data:image/svg+xml;base64,{image}"></figure>{tables}'
        f"<ul>{notes}</ul></section>"
    )


def _about(found: Mapping[str, Any]) -> str:
    about = found["provenance"]
    commit = about.get("commit") or "unknown"
    failed = f", {len(found['failed'])} failed" if found["failed"] else ""
    return (
        f"{' '.join(about['command'])} · budget {found['budget']}, seeds: "
        f"{found['seeds']}, cells: {found['cells']}{failed} · {about['started']} · "
        f"commit {commit[:12]}{'-dirty' if commit.endswith('-dirty') else ''} · "
        f"{about['cpu_count']} cores"
    )
