"""Every episode of a small MDP, with its probability.

A mean over sampled episodes, weighted by these probabilities instead, is its own
expectation: an estimator can be compared with an exact answer to rounding.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl.environments import Tabular
from hyperirl.exact._float64 import float64
from hyperirl.exact.tabular.solution import kernel
from hyperirl.exact.tabular.visits import initial_probabilities
from hyperirl.trajectories import Trajectories

_MAX_EPISODES = 1_000_000
_OVER = -1  # In place of a state.


def enumerate_episodes(
    mdp: Tabular, logits: Float[Array, "*time states actions"], horizon: int
) -> tuple[Trajectories, Float[Array, " episodes"]]:
    """All episodes cut at `horizon`, in `float64`, and their probabilities (sum 1).

    The list depends on shapes only, and includes impossible episodes: that keeps the
    probabilities differentiable with respect to `logits`. There are
    `n + n^2 + ... + n^horizon` that terminate (`n` = states x actions) and
    `n^horizon x states` that are cut. The policy may depend on time.
    """
    states, actions, length = _all_paths(
        mdp.num_states, mdp.action_space.num_actions, horizon
    )
    terminated = states[np.arange(len(states)), length] == _OVER
    mask = np.arange(horizon) < length[:, None]
    padded = np.where(states == _OVER, 0, states)

    log_pi = jax.nn.log_softmax(float64(logits))
    log_pi = jnp.broadcast_to(log_pi, (horizon, *log_pi.shape[-2:]))
    transitions = kernel(mdp)
    stop = 1 - jnp.sum(transitions, axis=-1, keepdims=True)
    moves = jnp.concatenate([transitions, jnp.maximum(stop, 0)], axis=-1)

    time = np.arange(horizon)[None, :]
    chosen = jnp.exp(log_pi[time, padded[:, :-1], actions])
    # The last column of `moves`, number -1, is the end of the task.
    moved = moves[padded[:, :-1], actions, states[:, 1:]]
    steps = jnp.where(mask, chosen * moved, 1.0)
    first = initial_probabilities(mdp)[padded[:, 0]]
    probabilities = first * jnp.prod(steps, axis=1)

    # An episode that is over stays where it was, as in a rollout.
    last = np.minimum(np.arange(horizon + 1), (length - terminated)[:, None])
    shown = np.take_along_axis(padded, last, axis=1)
    observations = jax.nn.one_hot(shown, mdp.num_states, dtype=jnp.float64)
    rewards = float64(mdp.rewards)[padded[:, :-1], actions]
    episodes = Trajectories(
        observations=observations,
        actions=jnp.asarray(actions, jnp.int32),
        mask=jnp.asarray(mask),
        terminated=jnp.asarray(terminated),
        rewards=jnp.where(mask, rewards, 0.0),
    )
    return episodes, probabilities


def _all_paths(
    num_states: int, num_actions: int, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (`_OVER` once terminated), actions and lengths of all episodes."""
    pairs = num_states * num_actions
    total = pairs**horizon * (num_states + 1)
    if total > _MAX_EPISODES:
        raise ValueError(
            f"{num_states} states, {num_actions} actions and {horizon} steps make more "
            f"than {total:,} episodes; at most {_MAX_EPISODES:,} are enumerated. Use a "
            "smaller MDP or a shorter horizon."
        )
    states, actions, lengths = [], [], []
    for length in range(1, horizon + 1):
        ends = [_OVER] if length < horizon else [*range(num_states), _OVER]
        choices = [range(num_states), range(num_actions)] * length + [ends]
        paths = np.array(list(itertools.product(*choices)))
        missing = [(0, 0), (0, horizon - length)]
        states.append(np.pad(paths[:, ::2], missing, constant_values=_OVER))
        actions.append(np.pad(paths[:, 1::2], missing))
        lengths.append(np.full(len(paths), length))
    return np.concatenate(states), np.concatenate(actions), np.concatenate(lengths)
