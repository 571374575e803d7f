"""Acting: many environments in step, never stopping, restarted when an episode ends.

Only this file touches an environment. What it hands over, a `Batch`, holds observations
and actions; a solver adds the rewards of the reward it is given, so a batch outlives a
change of reward. A world that is stepped by the host brings its own `start` and `act`.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments import AbstractEnvironment, AbstractWorld
from hyperirl.policies import AbstractDistribution, AbstractPolicy
from hyperirl.programs import compiled
from hyperirl.spaces import Discrete


class Actors(eqx.Module):
    """Environments in the middle of their episodes."""

    states: PyTree[Array]  # Leaves start with the axis of environments.
    times: Int[Array, " envs"]  # Steps since the last reset.


NEVER = np.iinfo(np.int32).max  # The time of a step that does not count.


class Branches(eqx.Module):
    """What each of the actions would have led to, under the same noise."""

    observations: Float[Array, "steps envs actions obs"]
    terminated: Bool[Array, "steps envs actions"]


class Batch(eqx.Module):
    """A stretch of experience of every environment; episodes begin and end inside it.

    `next_observations` are those before a restart: what the last action led to. A step
    that is `truncated` was cut off there and is bootstrapped; one that is `terminated`
    has no future. Padding has the time `NEVER`, at which every discount is 0.
    """

    observations: Float[Array, "steps envs obs"]
    actions: Int[Array, "steps envs"] | Float[Array, "steps envs act"]
    next_observations: Float[Array, "steps envs obs"]
    terminated: Bool[Array, "steps envs"]
    truncated: Bool[Array, "steps envs"]
    times: Int[Array, "steps envs"]
    branches: Branches | None = None  # Where actions are choices and all can be tried.
    rewards: Float[Array, "steps envs"] | None = (
        None  # Paid by a world that is stepped.
    )

    @property
    def alive(self) -> Float[Array, "steps envs"]:
        """1 for steps that were taken, 0 in the padding."""
        return (self.times != NEVER).astype(jnp.float32)

    @property
    def num_episodes(self) -> Float[Array, ""]:
        """How many episodes began, at least 1: what sums over steps are divided by."""
        began = jnp.sum((self.times == 0).astype(jnp.float32))
        return jnp.maximum(began, 1.0)


def start(environment: AbstractWorld, num_envs: int, *, key: PRNGKeyArray) -> Actors:
    """Fresh environments whose clocks are spread evenly over the horizon.

    So a batch always sees all parts of an episode, and the environments do not restart
    all at once. The first episode of each is cut short.
    """
    if environment.is_stepped:
        world: Any = environment
        return world.start(num_envs, key=key)
    assert isinstance(environment, AbstractEnvironment)
    return _start(environment, num_envs, key)


@functools.partial(compiled, level=1)
def _start(
    environment: AbstractEnvironment, num_envs: int, key: PRNGKeyArray
) -> Actors:
    reset = lambda key: environment.reset(key=key)
    states = jax.vmap(reset)(jr.split(key, num_envs))
    times = jnp.arange(num_envs, dtype=jnp.int32) * environment.horizon // num_envs
    return Actors(states, times)


def act(
    environment: AbstractWorld,
    policy: AbstractPolicy,
    actors: Actors,
    num_steps: int,
    *,
    key: PRNGKeyArray,
) -> tuple[Actors, Batch]:
    """Takes `num_steps` steps in every environment."""
    if environment.is_stepped:
        world: Any = environment
        return world.act(policy, actors, num_steps, key=key)
    assert isinstance(environment, AbstractEnvironment)
    return _act(environment, policy, actors, num_steps, key)


@functools.partial(compiled, level=1)
def _act(
    environment: AbstractEnvironment,
    policy: AbstractPolicy,
    actors: Actors,
    num_steps: int,
    key: PRNGKeyArray,
) -> tuple[Actors, Batch]:

    def one(state, time, noise, dynamics_key, fresh):
        observation = environment.observe(state)
        action = policy.act(observation, noise)
        after, terminated = environment.advance(state, action, key=dynamics_key)
        truncated = ~terminated & (time + 1 >= environment.horizon)
        reached = environment.observe(after)
        taken = observation, action, reached, terminated, truncated, time
        tried = _try_all(environment, state, dynamics_key)
        over = terminated | truncated
        restart = lambda new, old: jnp.where(over, new, old)
        return (
            jax.tree.map(restart, fresh, after),
            jnp.where(over, 0, time + 1),
            (taken, tried),
        )

    def step(actors, chance):
        states, times, seen = jax.vmap(one)(actors.states, actors.times, *chance)
        return Actors(states, times), seen

    def draw(key):
        action_key, dynamics_key, reset_key = jr.split(key, 3)
        fresh = environment.reset(key=reset_key)
        return policy.draw_noise(key=action_key), dynamics_key, fresh

    # All at once: hashing is many tiny operations, and slow in a loop.
    num_envs = actors.times.shape[0]
    keys = jax.vmap(lambda key: jr.split(key, num_envs))(jr.split(key, num_steps))
    chance = jax.vmap(jax.vmap(draw))(keys)
    actors, (taken, tried) = jax.lax.scan(step, actors, chance)
    return actors, Batch(*taken, branches=None if tried is None else Branches(*tried))


def _try_all(
    environment: AbstractEnvironment, state: PyTree[Array], key: PRNGKeyArray
) -> tuple[Float[Array, "actions obs"], Bool[Array, " actions"]] | None:
    """What each action leads to, and whether the task is over then."""
    if not isinstance(environment.action_space, Discrete):
        return None
    choices = jnp.arange(environment.action_space.num_actions, dtype=jnp.int32)
    advance = lambda action: environment.advance(state, action, key=key)
    states, terminated = jax.vmap(advance)(choices)
    return jax.vmap(environment.observe)(states), terminated


def distributions(
    policy: AbstractPolicy, observations: Float[Array, "*batch obs"]
) -> AbstractDistribution:
    """The policy's distributions, their leaves starting with the batch's axes."""
    per_observation = policy.distribution
    for _ in range(observations.ndim - 1):
        per_observation = jax.vmap(per_observation)
    return per_observation(observations)
