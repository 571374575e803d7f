"""Pendulum: swing a pole up and hold it there."""

import math

import jax.numpy as jnp
import numpy as np

from hyperirl.environments import AbstractWorld, Pendulum
from hyperirl.options import Options
from hyperirl.tasks.task import Axis, Plane, Task
from hyperirl.tasks.variants import scaled


def _variants(environment: AbstractWorld) -> dict[str, AbstractWorld]:
    return {
        "mass x1.5": scaled(environment, "mass", 1.5),
        "length x1.25": scaled(environment, "length", 1.25),
    }


def pendulum(**changes) -> Task:
    """A torque swings the pole up and holds it there.

    A step can cost 16: at the paper's temperature the soft-optimal policy hardly
    chooses any more, and no likelihood can be learned. So the temperature is 1.
    """
    environment = Pendulum(**changes)
    plane = Plane(
        Axis(
            "angle (rad)",
            reach=math.pi,
            locate=lambda seen: np.arctan2(seen[:, 1], seen[:, 0]),
        ),
        Axis("angular velocity (rad/s)", 2, reach=float(environment.max_speed)),
        lambda angle, speed: jnp.stack([jnp.cos(angle), jnp.sin(angle), speed]),
    )
    return Task(
        environment,
        "pendulum",
        options=Options(
            temperature=1.0, segment=0, natural=False, trust_region=False, step_kl=0.3
        ),
        budget=4_000_000,
        demos="pendulum",
        variants=_variants,
        plane=plane,
        input_names=("cos angle", "sin angle", "angular velocity (rad/s)"),
    )
