"""Demonstrations of any policy in any environment of Gymnasium."""

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from hyperirl.demos.demos import Demos
from hyperirl.demos.episodes import Episode, from_episodes
from hyperirl.demos.errors import DemosError
from hyperirl.demos.provenance import Provenance

_Space = spaces.Discrete | spaces.Box
_Act = Callable[[Any], Any]
_MAX_STEPS = 1_000_000


def record(
    env: gym.Env,
    act: _Act,
    episodes: int,
    *,
    seed: int,
    expert: str | None = None,
) -> Demos:
    """Whole episodes of a policy, with the true rewards.

    Observations are flattened as `gymnasium.spaces.flatten` does. Actions beyond the
    bounds are clipped before they are executed, and recorded as executed.

    Args:
        env: An environment with a time limit, or one that ends.
        act: Gets an observation and returns an action; or the pair of an action and
            its log-probability, or of an action and `None`, as SB3's `predict` does.
        episodes: How many.
        seed: Given to the first `reset`, and to the action space in case `act` samples
            from it.
        expert: Who acts, in a few words.
    """
    if episodes < 1:
        raise DemosError(f"Cannot record {episodes} episodes; ask for at least 1.")
    space = env.action_space
    if not isinstance(space, spaces.Discrete | spaces.Box):
        raise DemosError(
            f"The actions of this environment are {space}, and choices or vectors are "
            "needed; wrap it so that they are one of these."
        )
    if not env.observation_space.is_np_flattenable:
        raise DemosError(
            f"Observations of {env.observation_space} cannot be written as vectors of "
            "one length; wrap the environment so that they can."
        )
    space.seed(seed)
    seeds = [seed, *[None] * (episodes - 1)]
    recorded = [_episode(env, space, act, first) for first in seeds]
    return from_episodes(recorded, _provenance(env, seed, expert))


def _episode(env: gym.Env, space: _Space, act: _Act, seed: int | None) -> Episode:
    flat = lambda seen: _flat(env.observation_space, seen)
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, log_probs = [flat(observation)], [], [], []
    terminated = truncated = False
    while not (terminated or truncated):
        answer = act(observation)
        action, log_prob = answer if isinstance(answer, tuple) else (answer, None)
        executed = _executed(space, np.asarray(action))
        if log_prob is not None:
            log_probs.append(_log_prob(log_prob, changed=np.any(executed != action)))
        observation, reward, terminated, truncated, _ = env.step(executed)
        observations.append(flat(observation))
        actions.append(np.ravel(executed))
        rewards.append(float(reward))
        if len(actions) > _MAX_STEPS:
            raise DemosError(
                f"An episode has not ended after {_MAX_STEPS} steps; make the "
                "environment with `max_episode_steps`."
            )
    vectors = isinstance(space, spaces.Box)
    return Episode(
        observations=np.stack(observations),
        actions=np.stack(actions) if vectors else np.concatenate(actions),
        rewards=np.asarray(rewards),
        terminated=bool(terminated),
        log_probs=np.asarray(log_probs) if log_probs else None,
    )


def _flat(space: spaces.Space, observation: Any) -> np.ndarray:
    vector: Any = spaces.flatten(space, observation)
    return np.ravel(vector)


def _executed(space: _Space, action: np.ndarray) -> np.ndarray | np.int64:
    """The action as the environment wants it, within its bounds."""
    match space:
        case spaces.Discrete() if action.size == 1 and action.dtype.kind in "iu":
            choice = np.int64(action.reshape(())[()])
            if space.contains(choice):
                return choice
        case spaces.Box() if (
            action.size == space.low.size and action.dtype.kind in "fiu"
        ):
            shaped = action.reshape(space.low.shape).astype(space.low.dtype)
            if np.all(np.isfinite(shaped)):
                return np.clip(shaped, space.low, space.high)
    shown = " ".join(str(action).split())[:60]
    raise DemosError(
        f"`act` returned {shown} as an action, and one of {space} is needed; return "
        "the number of a choice, or a vector of finite numbers."
    )


def _log_prob(given: Any, *, changed: np.bool_) -> float:
    value = np.asarray(given)
    if (
        value.size != 1
        or value.dtype.kind not in "fiu"
        or not np.all(np.isfinite(value))
    ):
        raise DemosError(
            f"`act` returned {str(given)[:40]!r} beside the action; return its "
            "log-probability, one finite number, or the action alone."
        )
    if changed:
        raise DemosError(
            "`act` returned a log-probability of an action beyond the bounds, which is "
            "executed clipped; clip it in `act` and return the log-probability of what "
            "is executed, or none."
        )
    return float(value.reshape(()))


def _provenance(env: gym.Env, seed: int, expert: str | None) -> Provenance:
    spec = env.spec
    return Provenance(
        environment=None if spec is None else spec.id,
        options={} if spec is None else _plain(spec.kwargs),
        horizon=None if spec is None else spec.max_episode_steps,
        expert=expert,
        seed=seed,
        hyperirl_version=metadata.version("hyperirl"),
    )


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """What can be written down; how it was shown does not matter."""
    written = json.loads(json.dumps(options, default=lambda _: None))
    return {
        name: value
        for name, value in written.items()
        if value is not None and name != "render_mode"
    }
