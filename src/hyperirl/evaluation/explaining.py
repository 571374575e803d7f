"""A reward explained, for any number of inputs.

What it pays an expert's episode, which inputs it looks at, and where the policy goes
that it asks for.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.maps import evenly, input_names, plain, taken
from hyperirl.inner import true_reward
from hyperirl.rewards import AbstractReward, TableReward, rewards_of
from hyperirl.spaces import Discrete
from hyperirl.tasks import Task
from hyperirl.trajectories import Trajectories

_STEPS = 2048  # Whose derivatives are taken.
_BINS = 24
_MOST_INPUTS = 12  # Shown.


def along(
    environment: AbstractWorld,
    reward: AbstractReward,
    shown: Trajectories,
    episode: Trajectories,
) -> dict[str, Any]:
    """What the steps of an expert's episode are paid: `{"learned", "true"}`.

    `correlation` is that of learned and true rewards over all demonstrated steps, and
    `None` if one of them never changes. Without a true reward there is only `learned`.

    Args:
        environment: Knows the true reward, perhaps.
        reward: What was learned.
        shown: The demonstrations.
        episode: One of them.
    """
    first = np.asarray(episode.mask)[0]
    found = {"learned": plain(np.asarray(rewards_of(reward, episode))[0][first])}
    true = _true_rewards(environment, episode)
    if true is None:
        return found
    everywhere = np.asarray(shown.mask)
    learned = np.asarray(rewards_of(reward, shown))[everywhere]
    truth = _true_rewards(environment, shown)
    assert truth is not None
    correlation = _correlation(learned, truth[everywhere])
    return found | {"true": plain(true[0][first]), "correlation": correlation}


def _true_rewards(environment: AbstractWorld, episodes: Trajectories):
    """Computed, or as recorded where they are no function; `None` if not known."""
    if not environment.has_reward:
        return None
    if environment.is_stepped and episodes.rewards is None:
        return None
    return np.asarray(rewards_of(true_reward(environment), episodes))


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    a, b = a.astype(float) - a.mean(), b.astype(float) - b.mean()
    scale = np.sqrt(np.mean(a**2) * np.mean(b**2))
    return plain(np.mean(a * b) / scale) if scale > 1e-12 else None


def sensitivity(
    task: Task, reward: AbstractReward, shown: Trajectories
) -> dict[str, Any]:
    """Which inputs matter: `{"names", "learned", "true"}`, the largest first.

    `mean |d reward / d input|` over demonstrated steps, times the input's standard
    deviation there: what an ordinary change of the input is worth. Of a choice it is
    the reward's standard deviation over the choices. Empty for a table.

    Args:
        task: Knows names and, perhaps, the true reward.
        reward: What was learned.
        shown: The demonstrations.
    """
    if isinstance(reward.soft, TableReward):
        return {}
    environment = task.environment
    space = environment.action_space
    names = input_names(task)
    if isinstance(space, Discrete):
        names += ["action"]
    else:
        names += [f"action {i}" for i in range(space.size)]
    learned = _slopes(reward, shown, space)
    order = np.argsort(-np.nan_to_num(learned), kind="stable")
    found: dict[str, Any] = {
        "names": [names[i] for i in order],
        "learned": plain(learned[order]),
        "order": [int(i) for i in order if i < environment.observation_size],
    }
    if environment.has_reward and not environment.is_stepped:
        found["true"] = plain(_slopes(true_reward(environment), shown, space)[order])
    return found


def _slopes(reward: Callable, shown: Trajectories, space: Any) -> np.ndarray:
    """For each input, and for the action."""
    seen, actions = taken(shown)
    spread = seen.std(axis=0), actions.std(axis=0)
    some = evenly(len(seen), _STEPS)
    observations, actions = jnp.asarray(seen[some]), jnp.asarray(actions[some])
    wrt = 0 if isinstance(space, Discrete) else (0, 1)
    # Forward, for a true reward may hold a loop.
    slope = jax.jit(jax.vmap(jax.jacfwd(lambda o, a: reward(o, a), argnums=wrt)))
    mean = lambda slopes: np.abs(np.asarray(slopes, np.float64)).mean(axis=0)
    if not isinstance(space, Discrete):
        to_input, to_action = slope(observations, actions)
        parts = mean(to_input) * spread[0], mean(to_action) * spread[1]
        return np.concatenate(parts)
    choices = jnp.arange(space.num_actions, dtype=jnp.int32)
    over = jax.vmap(jax.vmap(lambda o, a: reward(o, a), (None, 0)), (0, None))
    paid = np.asarray(jax.jit(over)(observations, choices), np.float64)
    to_input = mean(slope(observations, actions)) * spread[0]
    return np.append(to_input, paid.std(axis=1).mean())


def visits(
    task: Task, expert: Trajectories, agent: Trajectories, order: Sequence[int] = ()
) -> dict[str, Any]:
    """Where the expert was, and where a policy goes.

    `{"inputs": [{"name", "edges", "expert", "agent", "overlap"}]}`: the shares of all
    steps between neighboring edges, and how much of them both have. What lies beyond
    the outer edges is counted next to them. Inputs that never change are left out.

    Args:
        task: Knows names.
        expert: The demonstrations.
        agent: Episodes of the policy.
        order: Inputs by how much they matter; the first few are shown.
    """
    ours, theirs = taken(expert)[0], taken(agent)[0]
    if _one_hot(ours) and _one_hot(theirs):
        edges = np.arange(ours.shape[1] + 1) - 0.5
        states = ours.argmax(axis=1), theirs.argmax(axis=1)
        return {"inputs": [_histogram("state", edges, *states)]}
    names = input_names(task)
    inputs = []
    for i in [*order, *(i for i in range(len(names)) if i not in order)]:
        both = np.concatenate([ours[:, i], theirs[:, i]])
        low, high = np.quantile(both[np.isfinite(both)], [0.005, 0.995])
        if high > low and len(inputs) < _MOST_INPUTS:
            edges = np.linspace(low, high, _BINS + 1)
            inputs.append(_histogram(names[i], edges, ours[:, i], theirs[:, i]))
    return {"inputs": inputs, "of": len(names)}


def _one_hot(seen: np.ndarray) -> bool:
    """Whether observations are numbers of states."""
    return bool(np.isin(seen, (0, 1)).all() and (seen.sum(axis=1) == 1).all())


def _histogram(
    name: str, edges: np.ndarray, ours: np.ndarray, theirs: np.ndarray
) -> dict[str, Any]:
    share = lambda values: (
        np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
    )
    expert, agent = share(ours), share(theirs)
    return {
        "name": name,
        "edges": plain(edges),
        "expert": plain(expert),
        "agent": plain(agent),
        "overlap": plain(np.minimum(expert, agent).sum()),
    }
