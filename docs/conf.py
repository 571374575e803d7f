"""Sphinx settings: `sphinx-build -W docs FOLDER`. Building needs no network."""

project = "hyperirl"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "hyperirl"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "results"]
