"""Whether demonstrations fit an environment."""

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.environments import AbstractWorld
from hyperirl.spaces import Box, Discrete


def check_against(demos: Demos, environment: AbstractWorld) -> None:
    """Raises `DemosError` unless the demonstrations could be from the environment.

    Looks at the size of observations, at the type, size and range of actions, and at
    the length of episodes.
    """
    name = getattr(environment, "name", type(environment).__name__)
    batch = demos.trajectories
    size = batch.observations.shape[-1]
    if size != environment.observation_size:
        raise DemosError(
            f"The demonstrations have observations of {size} numbers, and {name} has "
            f"{environment.observation_size}; give the environment they come from."
        )
    match environment.action_space:
        case Discrete() as space:
            _check_choices(demos, space, name)
        case Box() as space:
            _check_vectors(demos, space, name)
    longest = int(np.max(np.asarray(batch.lengths)))
    if longest > environment.horizon:
        raise DemosError(
            f"The demonstrations have episodes of up to {longest} steps, and {name} is "
            f"cut after {environment.horizon}; make it with `horizon={longest}`."
        )


def _check_choices(demos: Demos, space: Discrete, name: str) -> None:
    batch = demos.trajectories
    if not batch.discrete:
        raise DemosError(
            f"The demonstrations have vectors as actions, and those of {name} are "
            f"whole numbers below {space.num_actions}; give the environment they come "
            "from."
        )
    highest = int(np.max(np.asarray(batch.actions), where=batch.mask, initial=0))
    if highest >= space.num_actions:
        raise DemosError(
            f"The demonstrations have an action {highest}, and those of {name} are "
            f"whole numbers below {space.num_actions}; correct them or give the "
            "environment they come from."
        )


def _check_vectors(demos: Demos, space: Box, name: str) -> None:
    batch = demos.trajectories
    if batch.discrete:
        raise DemosError(
            f"The demonstrations have whole numbers as actions, and those of {name} "
            f"are vectors of {space.size} numbers; give the environment they come from."
        )
    size = batch.actions.shape[-1]
    if size != space.size:
        raise DemosError(
            f"The demonstrations have actions of {size} numbers, and {name} has "
            f"{space.size}; give the environment they come from."
        )
    actions = np.asarray(batch.actions)[np.asarray(batch.mask)]
    slack = 1e-6 * max(abs(space.low), abs(space.high))  # Rounding to float32.
    outside = (actions < space.low - slack) | (actions > space.high + slack)
    if np.isfinite(slack) and np.any(outside):
        worst = actions[outside][0]
        raise DemosError(
            f"The demonstrations have an action {worst:g}, and those of {name} lie in "
            f"[{space.low:g}, {space.high:g}]; record actions as they were executed."
        )
