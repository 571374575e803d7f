"""What methods and numbers are called in tables and figures: in one place."""

from collections.abc import Mapping
from typing import Any

from hyperirl.options import Cross
from hyperirl.report.comparison import HEADINGS as HEADINGS

METHODS: Mapping[str, str] = {
    "ml-irl": "ML-IRL",
    "explicit": "Explicit Fisher",
    "sketch": "Fisher with Sketching",
    "fisher": "ours (fisher)",
    "bc": "behavioral cloning",
}
"""The paper's names, and ours."""
SHORT: Mapping[str, str] = {
    "ml-irl": "ML-IRL",
    "explicit": "explicit",
    "sketch": "sketch",
    "fisher": "ours",
    "bc": "cloning",
}
"""Where there is little room."""
CROSSES: tuple[Cross, ...] = ("raw", "centred", "adjoint")
"""Cross products, the paper's first."""

LOSS = "L_outer"
DEVIATION = "deviation"
DIVERGED = "diverged"
SECONDS = "s / outer step"
STEPS = "outer steps"


def short(config: Mapping[str, Any]) -> str:
    """The method of a run, with the size of its sketch if it has one."""
    size = f", m = {config['sketch_size']}" if config["method"] == "sketch" else ""
    return f"{SHORT[config['method']]}{size}"
