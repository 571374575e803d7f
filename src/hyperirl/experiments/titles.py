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
    "soft-bellman": "soft Bellman (Yang 2024)",
    "nhgd": "NHGD (Kong 2026)",
    "parl": "PARL (Chakraborty 2024)",
    "penalty": "value-gap penalty (Shen 2025)",
    "matching": "expert minus agent",
    "max-ent": "maximum causal entropy",
    "exact": "through the exact solution",
    "bc": "behavioral cloning",
}
"""The authors' names, and ours."""
SHORT: Mapping[str, str] = {
    "ml-irl": "ML-IRL",
    "explicit": "explicit",
    "sketch": "sketch",
    "fisher": "ours",
    "soft-bellman": "soft Bellman",
    "nhgd": "NHGD",
    "parl": "PARL",
    "penalty": "penalty",
    "matching": "matching",
    "max-ent": "MaxEnt",
    "exact": "exact",
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
