"""Changes of a robot's model, to see whether a reward carries over.

Each takes MuJoCo's model before anything is simulated.
"""

from collections.abc import Callable, Mapping
from typing import Any

Change = Callable[[Any], None]


def stronger_gravity(model: Any) -> None:
    """Half as much again."""
    model.opt.gravity[:] *= 1.5


def heavier(model: Any) -> None:
    """All bodies, half as much again."""
    model.body_mass[:] *= 1.5
    model.body_inertia[:] *= 1.5


def weaker_last_motor(model: Any) -> None:
    """Half the force of the last joint that is driven."""
    model.actuator_gear[-1] *= 0.5


def disabled_last_joint(model: Any) -> None:
    """The motor of the last joint that is driven has no effect."""
    model.actuator_gear[-1] = 0.0


_ANY: Mapping[str, Change] = {"gravity x1.5": stronger_gravity, "mass x1.5": heavier}


def changes(num_motors: int) -> Mapping[str, Change]:
    """What evaluations try. A robot with a single motor keeps half of it."""
    if num_motors == 1:
        return {**_ANY, "last motor x0.5": weaker_last_motor}
    return {**_ANY, "last joint disabled": disabled_last_joint}
