"""Columns of observations as vectors, as Gymnasium's `flatten` lays them out."""

from typing import Any

import numpy as np

from hyperirl.demos.errors import DemosError

Columns = np.ndarray | dict[str, "Columns"]

_MAX_CHOICES = 2**12


def flatten(space: dict[str, Any], columns: Columns, name: str) -> np.ndarray:
    """One vector a row.

    A box is taken as it is, a choice becomes one number for each alternative, and the
    parts of a dictionary follow each other in the order of the space.

    Args:
        space: As Minari spells it.
        columns: What was recorded, in the same structure.
        name: What it is called in a file.
    """
    kind = space.get("type")
    if kind == "Dict" and isinstance(columns, dict):
        parts = space.get("subspaces")
        if not isinstance(parts, dict) or set(parts) != set(columns) or not parts:
            raise DemosError(f"`{name}` is not what its space says; copy it again.")
        vectors = [flatten(part, columns[key], key) for key, part in parts.items()]
        if len({len(vector) for vector in vectors}) != 1:
            raise DemosError(f"The parts of `{name}` differ in length; copy it again.")
        return np.concatenate(vectors, axis=1)
    if kind == "Discrete" and isinstance(columns, np.ndarray):
        return _one_hot(space, columns, name)
    if kind == "Box" and isinstance(columns, np.ndarray) and columns.ndim:
        return columns.reshape(len(columns), -1) if len(columns) else columns
    raise DemosError(
        f"`{name}` is of the space {str(kind)[:40]}, and only boxes, choices and "
        "dictionaries of them are read; record numbers instead."
    )


def _one_hot(space: dict[str, Any], chosen: np.ndarray, name: str) -> np.ndarray:
    size, start = space.get("n"), space.get("start", 0)
    if type(size) is not int or type(start) is not int or not 0 < size <= _MAX_CHOICES:
        raise DemosError(
            f"`{name}` is one of {str(size)[:40]} choices, and up to {_MAX_CHOICES} "
            "can be told apart; record numbers instead."
        )
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise DemosError(f"`{name}` is not a list of whole numbers; copy it again.")
    chosen = chosen.astype(np.int64) - start
    if np.any((chosen < 0) | (chosen >= size)):
        raise DemosError(f"`{name}` has a choice outside its space; copy it again.")
    return np.eye(size, dtype=np.float32)[chosen]
