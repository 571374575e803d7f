"""Numbers over seeds, and numbers as text."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hyperirl.report.numbers import text

# 97.5 % points of Student's t, for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def over_seeds(values: Iterable[Any]) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of independent values.

    By Student's t: there are few seeds. Unknown values are left out and not counted.
    """
    known = [v for v in values if v is not None and math.isfinite(v)]
    count = len(known)
    found: dict[str, Any] = dict.fromkeys(("mean", "low", "high", "deviation"))
    found["n"] = count
    if count:
        found["mean"] = float(np.mean(known))
    if count > 1:
        freedom = count - 1
        student = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _far(freedom)
        found["deviation"] = float(np.std(known, ddof=1))
        half = student * found["deviation"] / math.sqrt(count)
        found |= {"low": found["mean"] - half, "high": found["mean"] + half}
    return found


def _far(freedom: int) -> float:
    """The same point by the Cornish-Fisher expansion; for 11 or more, to 1e-3."""
    z = 1.959964
    first = (z**3 + z) / (4 * freedom)
    return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def last_five(values: Iterable[Any]) -> float | None:
    """The mean of the last five outer steps, as the paper has it."""
    known = [v for v in values if v is not None][-5:]
    return float(np.mean(known)) if known else None


def shown(value: Any) -> str:
    """A number, an interval or a word, for a table."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        if value.get("mean") is None:
            return "–"
        mean = text(value["mean"])
        if value.get("low") is None:
            return mean
        return f"{mean} [{text(value['low'], 3)}, {text(value['high'], 3)}]"
    return text(float(value)) if isinstance(value, int | float) else str(value)


def mean_of(value: Any) -> float:
    """The number, or the mean of the interval; NaN if it is not known."""
    found = value.get("mean") if isinstance(value, Mapping) else value
    return math.nan if found is None else float(found)
