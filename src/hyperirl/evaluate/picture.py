"""The learned reward beside the true one, as numbers to draw: `picture.json`."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, CartPole, Pendulum, Tabular
from hyperirl.evaluate.ranking import RankingSet, undiscounted_returns
from hyperirl.rewards import AbstractReward, QuadraticReward
from hyperirl.spaces import Discrete

_GRID = 41
_DIGITS = 5  # Of every number: more than a picture shows.


def picture(
    environment: AbstractEnvironment, reward: AbstractReward, ranking: RankingSet
) -> dict[str, Any]:
    """What a report draws of a reward.

    Either `{"kind": "heatmaps", "x": {"name", "values"}, "y": ..., "panels": [{"title",
    "values"}]}`, where `values[j][i]` belongs to `y[j]` and `x[i]`; or `{"kind":
    "matrices", "panels": [{"title", "rows", "columns", "values"}]}`. Always with
    `"scatter": {"x_name", "y_name", "x", "y", "groups"}` of the ranking set.
    """
    match environment:
        case Tabular():
            drawn = _tables(environment, reward)
        case LQR() if isinstance(reward.soft, QuadraticReward):
            drawn = _costs(environment, reward.soft)
        case _:
            drawn = _heatmaps(environment, reward, ranking)
    return drawn | {"scatter": _scatter(reward, ranking)}


def _scatter(reward: AbstractReward, ranking: RankingSet) -> dict[str, Any]:
    learned, true = undiscounted_returns(reward, ranking.trajectories)
    return {
        "x_name": "true return",
        "y_name": "learned return",
        "x": _plain(true),
        "y": _plain(learned),
        "groups": [f"{noise:.0%} random" for noise in np.asarray(ranking.noise)],
    }


def _tables(environment: Tabular, reward: AbstractReward) -> dict[str, Any]:
    learned = exact.tabular.reward_table(environment, reward)
    rows = [f"state {s}" for s in range(environment.num_states)]
    columns = [f"action {a}" for a in range(environment.action_space.num_actions)]
    panel = lambda title, values: _matrix(title, rows, columns, values)
    panels = [panel("learned", learned), panel("true", environment.rewards)]
    return {"kind": "matrices", "panels": panels}


def _costs(environment: LQR, reward: QuadraticReward) -> dict[str, Any]:
    states = [f"s{i}" for i in range(environment.observation_size)]
    actions = [f"a{i}" for i in range(environment.action_space.size)]
    panels = [
        _matrix("Q, learned", states, states, reward.state_cost),
        _matrix("Q, true", states, states, environment.Q),
        _matrix("R, learned", actions, actions, reward.action_cost),
        _matrix("R, true", actions, actions, environment.R),
    ]
    return {"kind": "matrices", "panels": panels}


def _matrix(title: str, rows: list[str], columns: list[str], values: Any):
    return {"title": title, "rows": rows, "columns": columns, "values": _plain(values)}


def _heatmaps(
    environment: AbstractEnvironment, reward: AbstractReward, ranking: RankingSet
) -> dict[str, Any]:
    """Over two coordinates, with the others at zero, for each choice or no action."""
    (x_name, x), (y_name, y), observe = _plane(environment, ranking)
    grid_x, grid_y = (jnp.asarray(g, jnp.float32) for g in np.meshgrid(x, y))
    observations = jax.vmap(jax.vmap(observe))(grid_x, grid_y)
    panels = []
    for action_name, action in _actions(environment):
        for kind, function in (("learned", reward), ("true", environment.reward)):
            over = jax.vmap(jax.vmap(lambda o, f=function, a=action: f(o, a)))
            values = _plain(jax.jit(over)(observations))
            panels.append({"title": f"{kind}, {action_name}", "values": values})
    return {
        "kind": "heatmaps",
        "x": {"name": x_name, "values": _plain(x)},
        "y": {"name": y_name, "values": _plain(y)},
        "panels": panels,
    }


def _actions(environment: AbstractEnvironment) -> list[tuple[str, Array]]:
    space = environment.action_space
    if not isinstance(space, Discrete):
        return [("no action", jnp.zeros(space.size, jnp.float32))]
    names = [f"action {a}" for a in range(space.num_actions)]
    if isinstance(environment, CartPole):
        names = ["push left", "push right"]
    return [(name, jnp.asarray(a, jnp.int32)) for a, name in enumerate(names)]


def _plane(environment: AbstractEnvironment, ranking: RankingSet):
    """Names and values of the two axes, and the observation of a point between them."""
    match environment:
        case CartPole():
            observe = _at(2, 3, environment.observation_size)
            axes = _axis(ranking, 2), _axis(ranking, 3)
            names = "angle (rad)", "angular velocity (rad/s)"
        case Pendulum():
            observe = lambda angle, speed: jnp.stack(
                [jnp.cos(angle), jnp.sin(angle), speed]
            )
            speed = float(environment.max_speed)
            axes = tuple(np.linspace(-m, m, _GRID) for m in (math.pi, speed))
            names = "angle (rad)", "angular velocity (rad/s)"
        case _:
            second = min(1, environment.observation_size - 1)
            observe = _at(0, second, environment.observation_size)
            axes = _axis(ranking, 0), _axis(ranking, second)
            names = "observation 0", f"observation {second}"
    return (names[0], axes[0]), (names[1], axes[1]), observe


def _at(first: int, second: int, size: int):
    """Observations with two coordinates set and the others zero."""

    def observe(x: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, " obs"]:
        zeros = jnp.zeros(size, jnp.float32)
        return zeros.at[first].set(x).at[second].set(y)

    return observe


def _axis(ranking: RankingSet, coordinate: int) -> np.ndarray:
    """An even grid around zero over what nearly all of the trajectories visit."""
    mask = np.asarray(ranking.trajectories.mask)
    seen = np.asarray(ranking.trajectories.observations)[:, :-1][mask][:, coordinate]
    reach = max(float(np.quantile(np.abs(seen), 0.98)), 1e-3)
    return np.linspace(-reach, reach, _GRID)


def _plain(values: Any) -> Any:
    """Nested lists of numbers, rounded; `None` for what is not finite."""
    values = np.asarray(values, np.float64)
    if values.ndim:
        return [_plain(part) for part in values]
    number = float(values)
    return float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None
