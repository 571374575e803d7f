"""Tables of numbers, as they come from a file."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hyperirl.verdict import number


def table_of(values: Sequence) -> np.ndarray:
    """Two axes of numbers, NaN for what is none."""
    table = np.array([[number(value) for value in row] for row in values], float)
    if table.ndim != 2 or not np.isfinite(table).any():
        raise ValueError("the values are not a table of numbers")
    return table


def column_of(values: Sequence) -> np.ndarray:
    """A row of numbers, NaN for what is none."""
    return np.array([number(value) for value in values], float)


def marks_of(rows: Any, shape: tuple[int, int]) -> np.ndarray | None:
    """Texts of 0 and 1 as a table; `None` if there are none of this shape."""
    if not isinstance(rows, list) or {len(str(row)) for row in rows} != {shape[1]}:
        return None
    marks = np.array([[mark == "1" for mark in str(row)] for row in rows])
    return marks if marks.shape == shape else None
