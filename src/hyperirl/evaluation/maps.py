"""The learned reward beside the true one, over two inputs or as a table."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.inner import true_reward
from hyperirl.rewards import AbstractReward, QuadraticReward, TableReward
from hyperirl.spaces import Discrete
from hyperirl.tasks import Axis, Task
from hyperirl.trajectories import Trajectories

_GRID = 41
_POINTS = 400  # Drawn of the demonstrations.
_NEAR = 1  # So many cells around a demonstrated one count as demonstrated.
_DIGITS = 5  # Of every number: more than a picture shows.


def reward_map(
    task: Task,
    reward: AbstractReward,
    episodes: Trajectories,
    shown: Trajectories,
    order: Sequence[int] = (),
) -> dict[str, Any]:
    """A reward as numbers to draw.

    Either `{"kind": "heatmaps", "x": {"name", "values"}, "y": ..., "panels": [{"title",
    "group", "values"}], "seen": {"x", "y"}, "inside"}`, where `values[j][i]` belongs to
    `y[j]` and `x[i]`, and so does the character `inside[j][i]`: "1" if demonstrated.
    Or `{"kind": "matrices", "panels": [{"title", "group", "rows", "columns", "values",
    "seen"}]}`. Panels of the learned and of the true reward can be compared. Empty, if
    an observation is a single number.

    Args:
        task: Knows the axes.
        reward: What was learned.
        episodes: Say how far to look: a ranking set, or the demonstrations.
        shown: The demonstrations.
        order: Inputs by how much they matter, for a task without axes of its own.
    """
    match reward.soft:
        case TableReward():
            return _tables(task.environment, reward, shown)
        case QuadraticReward() as quadratic:
            return _costs(task.environment, quadratic)
    if task.plane is not None:
        return _heatmaps(task, reward, _own_plane(task, episodes), shown)
    size = task.environment.observation_size
    if size < 2:
        return {}
    first, second = [*order, *(i for i in range(size) if i not in order)][:2]
    plane = _usual_plane(task, episodes, shown, first, second)
    return _heatmaps(task, reward, plane, shown)


def input_names(task: Task) -> list[str]:
    """What the numbers of an observation are called."""
    size = task.environment.observation_size
    names = [f"input {i}" for i in range(size)]
    return list(task.input_names) if len(task.input_names) == size else names


def taken(episodes: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Observations and actions of all steps, without padding."""
    mask = np.asarray(episodes.mask)
    seen = np.asarray(episodes.observations)[:, :-1][mask]
    return seen, np.asarray(episodes.actions)[mask]


def evenly(size: int, most: int) -> np.ndarray:
    """At most so many places among so many."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(int)


def plain(values: Any) -> Any:
    """Nested lists of numbers, rounded; `None` for what is not finite."""
    values = np.asarray(values, np.float64)
    if values.ndim:
        return [plain(part) for part in values]
    number = float(values)
    return float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None


def _true_reward(environment: AbstractWorld) -> AbstractReward | None:
    """The true reward as one of our classes, if it is one."""
    closed = exact.closed_form(environment)
    return None if closed is None else closed.true_reward()


def _tables(environment: AbstractWorld, reward: AbstractReward, shown: Trajectories):
    learned = reward.soft
    assert isinstance(learned, TableReward)
    states, actions = learned.table.shape
    rows = [f"state {s}" for s in range(states)]
    columns = [f"action {a}" for a in range(actions)]
    state = jnp.eye(states, dtype=learned.table.dtype)[0]
    level = reward(state, 0) - learned(state, 0)
    panels = [_matrix("learned", "reward", rows, columns, learned.table + level)]
    if isinstance(true := _true_reward(environment), TableReward):
        panels.append(_matrix("true", "reward", rows, columns, true.table))
    counts = np.zeros((states, actions), int)
    seen, chosen = taken(shown)
    np.add.at(counts, (seen.argmax(axis=1), chosen), 1)
    bits = _bits(counts > 0)
    return {"kind": "matrices", "panels": [p | {"seen": bits} for p in panels]}


def _costs(environment: AbstractWorld, reward: QuadraticReward):
    states = [f"s{i}" for i in range(reward.state_cost.shape[0])]
    actions = [f"a{i}" for i in range(reward.action_cost.shape[0])]
    true = _true_reward(environment)
    panels = []
    for name, names, cost in (
        ("Q", states, lambda r: r.state_cost),
        ("R", actions, lambda r: r.action_cost),
    ):
        panels.append(_matrix(f"{name}, learned", name, names, names, cost(reward)))
        if isinstance(true, QuadraticReward):
            panels.append(_matrix(f"{name}, true", name, names, names, cost(true)))
    return {"kind": "matrices", "panels": panels}


def _matrix(title: str, group: str, rows: list[str], columns: list[str], values: Any):
    return {
        "title": title,
        "group": group,
        "rows": rows,
        "columns": columns,
        "values": plain(values),
    }


@dataclasses.dataclass(frozen=True)
class _Plane:
    """Two axes with their values, and what is observed between them."""

    x: Axis
    y: Axis
    x_values: np.ndarray
    y_values: np.ndarray
    observe: Callable[[Float[Array, ""], Float[Array, ""]], Float[Array, " obs"]]
    others: str  # Where the other inputs are.


def _own_plane(task: Task, episodes: Trajectories) -> _Plane:
    """The task's, even around zero."""
    plane = task.plane
    assert plane is not None
    seen, _ = taken(episodes)

    def values(axis: Axis) -> np.ndarray:
        reach = axis.reach
        if reach is None:
            away = np.abs(seen[:, axis.coordinate or 0])
            reach = max(float(np.quantile(away, 0.98)), 1e-3)
        return np.linspace(-reach, reach, _GRID)

    x, y = values(plane.x), values(plane.y)
    return _Plane(plane.x, plane.y, x, y, plane.observe, "0")


def _usual_plane(
    task: Task, episodes: Trajectories, shown: Trajectories, first: int, second: int
) -> _Plane:
    """Two inputs, as far as nearly all episodes go, with the others as is usual."""
    seen, names = taken(episodes)[0], input_names(task)
    middle = jnp.asarray(np.median(taken(shown)[0], axis=0), jnp.float32)

    def values(i: int) -> np.ndarray:
        low, high = np.quantile(seen[:, i], [0.01, 0.99])
        room = max(0.05 * (high - low), 1e-3)
        return np.linspace(low - room, high + room, _GRID)

    return _Plane(
        Axis(names[first], coordinate=first),
        Axis(names[second], coordinate=second),
        values(first),
        values(second),
        lambda x, y: middle.at[first].set(x).at[second].set(y),
        "their median in the demonstrations",
    )


def _heatmaps(
    task: Task, reward: AbstractReward, plane: _Plane, shown: Trajectories
) -> dict[str, Any]:
    """Over two inputs, for each choice or no action."""
    environment = task.environment
    x, y = plane.x_values, plane.y_values
    grid_x, grid_y = (jnp.asarray(g, jnp.float32) for g in np.meshgrid(x, y))
    observations = jax.vmap(jax.vmap(plane.observe))(grid_x, grid_y)
    kinds: dict[str, Callable] = {"learned": reward}
    if environment.has_reward and not environment.is_stepped:  # Then a function.
        kinds["true"] = true_reward(environment)
    panels = []
    for action_name, action in _actions(task):
        for kind, function in kinds.items():
            over = jax.vmap(jax.vmap(lambda o, f=function, a=action: f(o, a)))
            title, values = f"{kind}, {action_name}", plain(jax.jit(over)(observations))
            panels.append({"title": title, "group": kind, "values": values})
    return {
        "kind": "heatmaps",
        "x": {"name": plane.x.name, "values": plain(x)},
        "y": {"name": plane.y.name, "values": plain(y)},
        "panels": panels,
        "others": plane.others,
        **_demonstrated(plane, shown),
    }


def _demonstrated(plane: _Plane, shown: Trajectories) -> dict[str, Any]:
    """Some demonstrated places, and which cells are near any; empty if not known."""
    seen, _ = taken(shown)
    x, y = plane.x.of(seen), plane.y.of(seen)
    if x is None or y is None:
        return {}
    cells = np.zeros((_GRID, _GRID), bool)
    column, row = (_cells(v, a) for v, a in ((x, plane.x_values), (y, plane.y_values)))
    on_map = lambda cell: (cell >= 0) & (cell < _GRID)
    within = on_map(column) & on_map(row)
    cells[row[within], column[within]] = True
    near = np.pad(cells, _NEAR)
    windows = np.lib.stride_tricks.sliding_window_view(near, (2 * _NEAR + 1,) * 2)
    some = np.flatnonzero(within)
    some = some[evenly(len(some), _POINTS)] if len(some) else some
    return {
        "seen": {"x": plain(x[some]), "y": plain(y[some])},
        "inside": _bits(windows.max(axis=(2, 3))),
    }


def _bits(table: np.ndarray) -> list[str]:
    """A text of 0 and 1 for each row."""
    return ["".join(row) for row in np.where(table, "1", "0").tolist()]


def _cells(values: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The number of the cell around each value; cells are centered at the axis'."""
    share = (values - axis[0]) / (axis[-1] - axis[0])
    return np.round(share * (len(axis) - 1)).astype(int)


def _actions(task: Task) -> list[tuple[str, Array]]:
    space = task.environment.action_space
    if not isinstance(space, Discrete):
        return [("no action", jnp.zeros(space.size, jnp.float32))]
    names = task.action_names or [f"action {a}" for a in range(space.num_actions)]
    return [(name, jnp.asarray(a, jnp.int32)) for a, name in enumerate(names)]
