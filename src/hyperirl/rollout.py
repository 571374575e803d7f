"""Trajectories from an environment and a policy: one `scan`, any number of episodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from hyperirl.environments import AbstractEnvironment
from hyperirl.policies import AbstractPolicy
from hyperirl.trajectories import Trajectories


@eqx.filter_jit
def rollout(
    environment: AbstractEnvironment,
    policy: AbstractPolicy,
    num_episodes: int,
    *,
    key: PRNGKeyArray,
    horizon: int | None = None,
) -> Trajectories:
    """Plays whole episodes in parallel, each from its own reset.

    An episode that terminates early stays in its last state, masked.

    Args:
        environment: Where to act.
        policy: Who acts.
        num_episodes: How many episodes.
        key: For first states, actions and dynamics.
        horizon: Where episodes are cut; the environment's own by default.
    """
    num_steps = environment.horizon if horizon is None else horizon
    reset_key, step_key = jr.split(key)
    states = jax.vmap(lambda key: environment.reset(key=key))(
        jr.split(reset_key, num_episodes)
    )

    def one(state, alive, key):
        action_key, dynamics_key = jr.split(key)
        observation = environment.observe(state)
        action = policy.sample(observation, key=action_key)
        transition = environment.step(state, action, key=dynamics_key)
        keep = lambda new, old: jnp.where(alive, new, old)
        next_state = jax.tree.map(keep, transition.state, state)
        reward = jnp.where(alive, transition.reward, 0.0)
        ended = alive & transition.terminated
        return next_state, ended, (observation, action, reward, alive)

    def step(carry, key):
        states, alive = carry
        keys = jr.split(key, num_episodes)
        states, ended, taken = jax.vmap(one)(states, alive, keys)
        return (states, alive & ~ended), taken

    init = states, jnp.ones(num_episodes, bool)
    (states, alive), taken = jax.lax.scan(step, init, jr.split(step_key, num_steps))
    observations, actions, rewards, mask = jax.tree.map(
        lambda leaf: jnp.swapaxes(leaf, 0, 1), taken
    )
    last = jax.vmap(environment.observe)(states)
    observations = jnp.concatenate([observations, last[:, None]], axis=1)
    return Trajectories(observations, actions, mask, ~alive, rewards)
