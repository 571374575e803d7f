"""Tasks: environments with all that is known about them, one file each.

A new built-in task is a file that makes a `Task`, and a line in `_BUILT_IN`.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from hyperirl.environments import AbstractWorld
from hyperirl.tasks.cartpole import cartpole, cartpole_fixed
from hyperirl.tasks.gymnasium import GYM, of_gymnasium
from hyperirl.tasks.importing import import_task
from hyperirl.tasks.lqr import lqr, lqr_clipped
from hyperirl.tasks.pendulum import pendulum
from hyperirl.tasks.tabular import grid_world, tabular
from hyperirl.tasks.task import Axis as Axis
from hyperirl.tasks.task import Plane as Plane
from hyperirl.tasks.task import Task as Task
from hyperirl.tasks.variants import scaled as scaled

AnyTask = Any
"""A name, a `Task`, an environment, or a function that makes one: see `as_task`."""

_BUILT_IN: dict[str, Callable[..., Task]] = {
    "cartpole": cartpole,
    "cartpole-fixed": cartpole_fixed,
    "lqr": lqr,
    "lqr-clipped": lqr_clipped,
    "pendulum": pendulum,
    "tabular": tabular,
    "grid-world": grid_world,
}
names: tuple[str, ...] = tuple(_BUILT_IN)


def make(name: str, **changes: Any) -> Task:
    """The built-in task of that name.

    Args:
        name: One of `names`.
        **changes: What to change about its environment, such as `half_length=1.0`:
            fields of it, or arguments of `random_mdp` (and `seed`) and `grid_world`.
    """
    if name not in _BUILT_IN:
        raise ValueError(_unknown(name))
    try:
        return _BUILT_IN[name](**changes)
    except TypeError as error:
        raise ValueError(f"{name} does not take these options: {error}.") from error


def as_task(
    task: AnyTask,
    *,
    workers: int = 0,
    ray: bool = False,
    horizon: int | None = None,
    longest: int | None = None,
) -> Task:
    """A task from whatever a user may call one.

    Args:
        task: A task; an environment of ours or of Gymnasium's, or a function that
            makes one; the name of a built-in task; `gym:ID` for one of Gymnasium's; or
            `module:name`, something of these that can be imported. Importing runs
            code, so this must never be called with what a file says.
        workers: Processes that step shards of one of Gymnasium's; 0: this one does.
        ray: Whether the workers are actors of Ray, which must be running.
        horizon: Where episodes of one of Gymnasium's are cut; by default where it says.
        longest: How long demonstrations are: where they are cut if nothing says.
    """
    stepping: Any = dict(workers=workers, ray=ray, horizon=horizon, longest=longest)
    is_name = isinstance(task, str)
    if is_name and task not in _BUILT_IN and not task.startswith(GYM):
        if ":" not in task:
            raise ValueError(_unknown(task))
        found = as_task(import_task(task), **stepping)
        return dataclasses.replace(found, name=task)
    if is_name and task in _BUILT_IN:
        task = make(task)
    if isinstance(task, AbstractWorld):
        task = Task(task)
    if not isinstance(task, Task):
        return of_gymnasium(task, **stepping)
    if workers or ray:
        raise ValueError(
            f"{task.name} cannot be dealt out to workers, because it is not made by "
            "Gymnasium here; leave `workers` and `ray` out."
        )
    if horizon not in (None, task.environment.horizon):
        raise ValueError(
            f"`horizon` is {horizon}, and {task.name} is cut after "
            f"{task.environment.horizon} steps; leave it out, or make the environment "
            "with another one."
        )
    return task


def is_safe(name: str) -> bool:
    """Whether a task can be made from what a file says: nothing is imported for it."""
    return name in _BUILT_IN or (name.startswith(GYM) and name.count(":") == 1)


def _unknown(name: str) -> str:
    if re.search(r"-v\d+$", name):
        return (
            f"There is no task {name!r}; say `{GYM}{name}` for an environment of "
            "Gymnasium's."
        )
    return (
        f"There is no task {name!r}; choose one of {', '.join(names)}, `gym:ID` for an "
        "environment of Gymnasium's, or `module:function` for your own."
    )
