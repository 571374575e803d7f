"""Numbers from files that anybody may have written."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


def number(value: Any) -> float:
    """A float, NaN for whatever is not a number or beyond reason."""
    known = isinstance(value, int | float) and abs(value) < 1e100
    return float(value) if known else math.nan


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number and its interval, NaN where it is not known."""

    mean: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0

    @classmethod
    def of(cls, value: Any) -> "Estimate":
        """From a number, or from `{"mean", "low", "high", "n"}`."""
        if not isinstance(value, Mapping):
            return cls(number(value))
        mean, low, high = (number(value.get(key)) for key in ("mean", "low", "high"))
        count = number(value.get("n"))
        return cls(mean, low, high, int(count) if math.isfinite(count) else 0)

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return math.isfinite(self.mean)
