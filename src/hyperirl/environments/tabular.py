"""Finite MDPs, small enough to be solved exactly: random ones and grid worlds."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from hyperirl.environments.environment import (
    AbstractEnvironment,
    check_shapes_and_types,
    parameter,
)
from hyperirl.spaces import Discrete


class Tabular(AbstractEnvironment):
    """States and actions are numbers; a state is observed as a one-hot vector.

    Rows of `transitions` may sum to less than 1: the rest is the probability that the
    task is over after that action.
    """

    transitions: Float[Array, "states actions states"] = parameter(
        np.ones((1, 1, 1)), keep_type=True
    )
    rewards: Float[Array, "states actions"] = parameter(
        np.zeros((1, 1)), keep_type=True
    )
    initial: Float[Array, " states"] = parameter(np.ones(1), keep_type=True)
    horizon: int = eqx.field(static=True, default=100)

    def __check_init__(self):
        states, actions, _ = self.transitions.shape
        shapes = {
            "transitions": (states, actions, states),
            "rewards": (states, actions),
            "initial": (states,),
        }
        check_shapes_and_types(self, shapes)
        _check_probabilities("transitions", self.transitions, at_least=0.0)
        _check_probabilities("initial", self.initial, at_least=1.0)

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self.transitions.shape[0]

    @property
    def observation_size(self) -> int:
        return self.num_states

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.transitions.shape[1])

    def reset(self, *, key: PRNGKeyArray) -> Int[Array, ""]:
        return jr.categorical(key, jnp.log(self.initial)).astype(jnp.int32)

    def observe(self, state: Int[Array, ""]) -> Float[Array, " states"]:
        return jax.nn.one_hot(state, self.num_states, dtype=self.rewards.dtype)

    def state_of(self, observation: Float[Array, " states"]) -> Int[Array, ""]:
        return jnp.argmax(observation).astype(jnp.int32)

    def reward(self, observation: Float[Array, " states"], action: Int[Array, ""]):
        return observation @ self.rewards[:, action]

    def advance(self, state: Int[Array, ""], action: Int[Array, ""], *, key):
        """A draw from the row of `transitions`; what is missing from it terminates."""
        row = self.transitions[state, action]
        stop = jnp.maximum(1 - jnp.sum(row, keepdims=True), 0)
        # Rounding of a row that sums to 1 is no chance to terminate.
        stop = jnp.where(stop < 1e-6, jnp.zeros_like(stop), stop)
        logits = jnp.log(jnp.concatenate([row, stop]))
        drawn = jr.categorical(key, logits).astype(jnp.int32)
        terminated = drawn == self.num_states
        return jnp.where(terminated, state, drawn), terminated


def _check_probabilities(name: str, array: Array, *, at_least: float) -> None:
    if isinstance(array, Tracer):
        return  # Its numbers are not known yet.
    numbers = np.asarray(array, np.float64)
    sums = numbers.sum(axis=-1)
    right = (sums > at_least - 1e-4) & (sums < 1 + 1e-4) & (numbers >= 0).all(axis=-1)
    if not right.all():
        total = "1" if at_least else "at most 1"
        raise ValueError(
            f"`{name}` must hold probabilities: nothing negative, and sums over the "
            f"last axis of {total}; got sums from {sums.min():g} to {sums.max():g} and "
            f"a smallest entry of {numbers.min():g}."
        )


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _random_tables(key, num_states, num_actions, dtype):
    """Transitions, rewards and initial distribution, in one program."""
    transition_key, reward_key, initial_key = jr.split(key, 3)

    def distributions(key, *shape):
        """Uniformly random ones, over the last axis: a flat Dirichlet."""
        draws = jr.exponential(key, shape, dtype)
        return draws / jnp.sum(draws, axis=-1, keepdims=True)

    return (
        distributions(transition_key, num_states, num_actions, num_states),
        jr.normal(reward_key, (num_states, num_actions), dtype),
        distributions(initial_key, num_states),
    )


def random_mdp(
    num_states: int = 8,
    num_actions: int = 3,
    *,
    key: PRNGKeyArray,
    horizon: int = 100,
    stop: float = 0.0,
    dtype: DTypeLike = jnp.float32,
) -> Tabular:
    """Uniformly random transitions, normal rewards; actions stop with chance `stop`.

    Args:
        num_states: How many states.
        num_actions: How many actions.
        key: Decides everything.
        horizon: Where rollouts are cut.
        stop: The probability that the task is over after any action.
        dtype: Of the arrays.
    """
    if not 0 <= stop < 1:
        raise ValueError(f"`stop` is a probability below 1, got {stop}.")
    tables = _random_tables(key, num_states, num_actions, jnp.dtype(dtype))
    transitions, rewards, initial = tables
    transitions = (1 - stop) * transitions
    return Tabular(
        transitions=transitions, rewards=rewards, initial=initial, horizon=horizon
    )


def grid_world(
    height: int = 5,
    width: int = 5,
    *,
    slip: float = 0.1,
    horizon: int = 100,
    dtype: DTypeLike = jnp.float32,
) -> Tabular:
    """Walk from the top left to the goal at the bottom right, where the task ends.

    The four actions move up, right, down and left; walls stop. With probability `slip`
    the move goes in a random direction. Every step costs 0.1 until the goal, from which
    any action collects 1 and terminates.
    """
    if not 0 <= slip <= 1:
        raise ValueError(f"`slip` is a probability, got {slip}.")
    moves = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
    states = height * width
    rows, columns = np.divmod(np.arange(states), width)
    target_rows = np.clip(rows[:, None] + moves[None, :, 0], 0, height - 1)
    target_columns = np.clip(columns[:, None] + moves[None, :, 1], 0, width - 1)
    sure = np.eye(states)[target_rows * width + target_columns]
    transitions = (1 - slip) * sure + slip * sure.mean(axis=1, keepdims=True)
    transitions[-1] = 0.0  # The goal: whatever is done there, the task is over.
    rewards = np.full((states, 4), -0.1)
    rewards[-1] = 1.0
    cast = lambda array: jnp.asarray(array, dtype)
    return Tabular(
        transitions=cast(transitions),
        rewards=cast(rewards),
        initial=cast(np.eye(states)[0]),
        horizon=horizon,
    )
