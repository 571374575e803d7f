"""What an action may be: one of several choices, or a vector."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The choices `0, 1, ..., num_actions - 1`."""

    num_actions: int


@dataclasses.dataclass(frozen=True)
class Box:
    """Vectors of `size` numbers, each within `[low, high]`; unbounded by default."""

    size: int
    low: float = -math.inf
    high: float = math.inf


ActionSpace = Discrete | Box
