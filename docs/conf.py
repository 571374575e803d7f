"""Sphinx settings: `sphinx-build -W docs FOLDER`. Building needs no network."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))

import api_pages  # noqa: E402
import notebook_pages  # noqa: E402
import reference_pages  # noqa: E402

reference_pages.write(_HERE / "reference")
api_pages.write(_HERE / "reference/api")
notebook_pages.write(_HERE.parent / "examples", _HERE / "tutorials/notebooks")

project = "hyperirl"
extensions = ["myst_parser", "mathml"]
html_theme = "furo"
html_title = "hyperirl"
html_math_renderer = "mathml"
html_show_copyright = False
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
highlight_language = "none"  # Of blocks that name none: most are commands.
exclude_patterns = ["_build", "results"]
