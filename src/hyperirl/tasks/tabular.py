"""Finite MDPs, which can be solved exactly."""

import jax.random as jr

from hyperirl.environments import grid_world as make_grid_world
from hyperirl.environments import random_mdp
from hyperirl.options import Options
from hyperirl.tasks.task import Task

_OPTIONS = Options(
    temperature=0.1,
    segment=0,
    steps=30,
    policy_hidden=(),
    reward="table",
    damping=0.1,
    critic_units=0,
    inner="exact",
    demo_starts=0.0,
)


def tabular(seed: int = 0, **changes) -> Task:
    """Random transitions and rewards."""
    environment = random_mdp(key=jr.key(seed), **changes)
    return Task(environment, "tabular", options=_OPTIONS)


def grid_world(**changes) -> Task:
    """Walk to the goal."""
    return Task(make_grid_world(**changes), "grid-world", options=_OPTIONS)
