"""A task: an environment, and all that is known about working with it."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Array, Float

from hyperirl.environments import AbstractWorld
from hyperirl.options import Options
from hyperirl.problem import Problem

USUAL_TEMPERATURE = 0.1  # The paper's.


@dataclasses.dataclass(frozen=True)
class Axis:
    """An axis of a picture, even around zero."""

    name: str
    coordinate: int | None = None
    """Reaches over what trajectories visit of this number of the observation..."""
    reach: float | None = None
    """...or as far as this."""
    locate: Callable[[np.ndarray], np.ndarray] | None = None
    """Where observations lie on it, if not at that number of theirs."""

    def of(self, observations: np.ndarray) -> np.ndarray | None:
        """Where observations lie on it; `None` if that is not known."""
        if self.locate is not None:
            return self.locate(observations)
        return None if self.coordinate is None else observations[:, self.coordinate]


@dataclasses.dataclass(frozen=True)
class Plane:
    """The two axes over which a reward is drawn."""

    x: Axis
    y: Axis
    observe: Callable[[Float[Array, ""], Float[Array, ""]], Float[Array, " obs"]]
    """The observation at a point between the axes."""


def as_it_is(
    environment: AbstractWorld, problem: Problem, share: float
) -> AbstractWorld:
    """Experts train in the task itself."""
    del problem, share
    return environment


def no_variants(
    environment: AbstractWorld,
) -> Mapping[str, AbstractWorld]:
    """Nothing is known to change."""
    del environment
    return {}


@dataclasses.dataclass(frozen=True)
class Task:
    """An environment and what suits it. Everything but the environment is optional.

    ```
    task = Task(MyEnvironment(), options=Options(temperature=0.5), budget=200_000)
    result = hyperirl.learn(task, demos)
    ```
    """

    environment: AbstractWorld
    name: str = ""
    """What it is called in folders and reports; by default as its class."""
    options: Options = Options()
    """What suits it where the user says nothing."""
    budget: int = 1_000_000
    """Environment steps after which a policy trained from scratch has settled."""
    demos: str | None = None
    """The name of its bundled demonstrations."""
    variants: Callable[[AbstractWorld], Mapping[str, AbstractWorld]] = no_variants
    """The same task with other dynamics, by name: to see if a reward carries over."""
    practice: Callable[[AbstractWorld, Problem, float], AbstractWorld] = as_it_is
    """Where an expert trains, after a share of its training: the same soft-optimal
    policy, easier to learn."""
    plane: Plane | None = None
    """The axes of pictures; by default the two inputs that matter most."""
    input_names: tuple[str, ...] = ()
    """Of the numbers of an observation, for pictures."""
    action_names: tuple[str, ...] = ()
    """Of choices, for pictures."""

    @property
    def temperature(self) -> float:
        """The usual one."""
        return self.options.temperature or USUAL_TEMPERATURE

    def __post_init__(self):
        if not isinstance(self.environment, AbstractWorld):
            raise ValueError(
                f"A task is made of an environment, got {self.environment!r}; derive "
                "its class from `hyperirl.environments.AbstractEnvironment`."
            )
        if not self.name:
            object.__setattr__(self, "name", type(self.environment).__name__)
