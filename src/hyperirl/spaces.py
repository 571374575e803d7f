"""What an action may be: one of several choices, or a vector."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The choices `0, 1, ..., num_actions - 1`."""

    num_actions: int

    def __post_init__(self):
        if self.num_actions < 1:
            raise ValueError(f"There must be a choice, got {self.num_actions} actions.")


@dataclasses.dataclass(frozen=True)
class Box:
    """Vectors of `size` numbers, each within `[low, high]`; unbounded by default."""

    size: int
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"An action needs at least one number, got {self.size}.")
        if not self.low < self.high:  # Also catches NaN.
            raise ValueError(
                f"`low` must be below `high`, got low={self.low} and high={self.high}."
            )


ActionSpace = Discrete | Box


def uniform_entropy(space: ActionSpace) -> float:
    """The entropy of the uniform policy: the log of how many choices there are.

    For a box it is the log of its volume. A box without bounds has no uniform policy;
    for it this is 0.
    """
    if isinstance(space, Discrete):
        return math.log(space.num_actions)
    width = space.high - space.low
    return space.size * math.log(width) if math.isfinite(width) else 0.0
