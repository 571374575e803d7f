"""The learned reward beside the true one, as numbers to draw: `picture.json`."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.ranking import undiscounted_returns
from hyperirl.inner import true_reward
from hyperirl.rewards import AbstractReward, QuadraticReward, TableReward
from hyperirl.spaces import Discrete
from hyperirl.tasks import Axis, Plane, Task
from hyperirl.trajectories import Trajectories

_GRID = 41
_DIGITS = 5  # Of every number: more than a picture shows.


def picture(
    task: Task, reward: AbstractReward, episodes: Trajectories
) -> dict[str, Any]:
    """What a report draws of a reward.

    Either `{"kind": "heatmaps", "x": {"name", "values"}, "y": ..., "panels": [{"title",
    "values"}]}`, where `values[j][i]` belongs to `y[j]` and `x[i]`; or `{"kind":
    "matrices", "panels": [{"title", "rows", "columns", "values"}]}`. With true rewards,
    also `"scatter": {"x_name", "y_name", "x", "y", "groups"}` of the episodes.

    Args:
        task: Knows the axes.
        reward: What was learned.
        episodes: Show where to look: a ranking set, or the demonstrations.
    """
    match reward.soft:
        case TableReward():
            drawn = _tables(task.environment, reward)
        case QuadraticReward() as quadratic:
            drawn = _costs(task.environment, quadratic)
        case _:
            drawn = _heatmaps(task, reward, episodes)
    return drawn


def scatter(
    reward: AbstractReward, episodes: Trajectories, noise: Float[Array, " episodes"]
) -> dict[str, Any]:
    """Learned and true returns of trajectories from expert to random."""
    learned, true = undiscounted_returns(reward, episodes)
    return {
        "x_name": "true return",
        "y_name": "learned return",
        "x": _plain(true),
        "y": _plain(learned),
        "groups": [f"{share:.0%} random" for share in np.asarray(noise)],
    }


def _true_reward(environment: AbstractWorld) -> AbstractReward | None:
    """The true reward as one of our classes, if it is one."""
    closed = exact.closed_form(environment)
    return None if closed is None else closed.true_reward()


def _tables(environment: AbstractWorld, reward: AbstractReward):
    learned = reward.soft
    assert isinstance(learned, TableReward)
    states, actions = learned.table.shape
    rows = [f"state {s}" for s in range(states)]
    columns = [f"action {a}" for a in range(actions)]
    state = jnp.eye(states, dtype=learned.table.dtype)[0]
    level = reward(state, 0) - learned(state, 0)
    panels = [_matrix("learned", rows, columns, learned.table + level)]
    if isinstance(true := _true_reward(environment), TableReward):
        panels.append(_matrix("true", rows, columns, true.table))
    return {"kind": "matrices", "panels": panels}


def _costs(environment: AbstractWorld, reward: QuadraticReward):
    states = [f"s{i}" for i in range(reward.state_cost.shape[0])]
    actions = [f"a{i}" for i in range(reward.action_cost.shape[0])]
    true = _true_reward(environment)
    panels = []
    for name, names, cost in (
        ("Q", states, lambda r: r.state_cost),
        ("R", actions, lambda r: r.action_cost),
    ):
        panels.append(_matrix(f"{name}, learned", names, names, cost(reward)))
        if isinstance(true, QuadraticReward):
            panels.append(_matrix(f"{name}, true", names, names, cost(true)))
    return {"kind": "matrices", "panels": panels}


def _matrix(title: str, rows: list[str], columns: list[str], values: Any):
    return {"title": title, "rows": rows, "columns": columns, "values": _plain(values)}


def _heatmaps(
    task: Task, reward: AbstractReward, episodes: Trajectories
) -> dict[str, Any]:
    """Over two coordinates, with the others at zero, for each choice or no action."""
    environment = task.environment
    plane = _usual_plane(environment) if task.plane is None else task.plane
    x, y = (_values(axis, episodes) for axis in (plane.x, plane.y))
    grid_x, grid_y = (jnp.asarray(g, jnp.float32) for g in np.meshgrid(x, y))
    observations = jax.vmap(jax.vmap(plane.observe))(grid_x, grid_y)
    kinds: dict[str, Callable] = {"learned": reward}
    if environment.has_reward and not environment.is_stepped:  # Then a function.
        kinds["true"] = true_reward(environment)
    panels = []
    for action_name, action in _actions(task):
        for kind, function in kinds.items():
            over = jax.vmap(jax.vmap(lambda o, f=function, a=action: f(o, a)))
            values = _plain(jax.jit(over)(observations))
            panels.append({"title": f"{kind}, {action_name}", "values": values})
    return {
        "kind": "heatmaps",
        "x": {"name": plane.x.name, "values": _plain(x)},
        "y": {"name": plane.y.name, "values": _plain(y)},
        "panels": panels,
    }


def _actions(task: Task) -> list[tuple[str, Array]]:
    space = task.environment.action_space
    if not isinstance(space, Discrete):
        return [("no action", jnp.zeros(space.size, jnp.float32))]
    names = task.action_names or [f"action {a}" for a in range(space.num_actions)]
    return [(name, jnp.asarray(a, jnp.int32)) for a, name in enumerate(names)]


def _usual_plane(environment: AbstractWorld) -> Plane:
    """The first two numbers of an observation, with the others at zero."""
    size = environment.observation_size
    second = min(1, size - 1)

    def observe(x: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, " obs"]:
        zeros = jnp.zeros(size, jnp.float32)
        return zeros.at[0].set(x).at[second].set(y)

    axis = lambda i: Axis(f"observation {i}", coordinate=i)
    return Plane(axis(0), axis(second), observe)


def _values(axis: Axis, episodes: Trajectories) -> np.ndarray:
    """An even grid around zero, by default over what nearly all episodes visit."""
    reach = axis.reach
    if reach is None:
        mask = np.asarray(episodes.mask)
        seen = np.asarray(episodes.observations)[:, :-1][mask][:, axis.coordinate or 0]
        reach = max(float(np.quantile(np.abs(seen), 0.98)), 1e-3)
    return np.linspace(-reach, reach, _GRID)


def _plain(values: Any) -> Any:
    """Nested lists of numbers, rounded; `None` for what is not finite."""
    values = np.asarray(values, np.float64)
    if values.ndim:
        return [_plain(part) for part in values]
    number = float(values)
    return float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None
