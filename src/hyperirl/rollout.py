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

    An episode that terminates early stays in its last state, masked. Once all have
    terminated nothing is computed any more.

    Args:
        environment: Where to act.
        policy: Who acts.
        num_episodes: How many episodes.
        key: For first states, actions and dynamics.
        horizon: Where episodes are cut; the environment's own by default.
    """
    num_steps = environment.horizon if horizon is None else horizon
    if num_episodes < 1 or num_steps < 1:
        raise ValueError(
            "A rollout needs at least one episode of at least one step, got "
            f"num_episodes={num_episodes} and a horizon of {num_steps}."
        )
    reset_key, step_key = jr.split(key)
    states = jax.vmap(lambda key: environment.reset(key=key))(
        jr.split(reset_key, num_episodes)
    )

    def one(state, alive, observation, action_key, dynamics_key):
        action = policy.sample(observation, key=action_key)
        transition = environment.step(state, action, key=dynamics_key)
        keep = lambda new, old: jnp.where(alive, new, old)
        next_state = jax.tree.map(keep, transition.state, state)
        reward = jnp.where(alive, transition.reward, 0.0)
        return next_state, alive & ~transition.terminated, action, reward

    def play(states, alive, observations, keys):
        action_keys, dynamics_key = keys
        # Split here, so that deterministic dynamics never have theirs computed.
        dynamics_keys = jr.split(dynamics_key, num_episodes)
        return jax.vmap(one)(states, alive, observations, action_keys, dynamics_keys)

    def rest(states, alive, observations, keys):
        nothing = jax.eval_shape(play, states, alive, observations, keys)[2:]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), nothing)
        return states, alive, *zeros

    def step(carry, keys):
        states, alive = carry
        observations = jax.vmap(environment.observe)(states)
        states, still_alive, actions, rewards = jax.lax.cond(
            jnp.any(alive), play, rest, states, alive, observations, keys
        )
        return (states, still_alive), (observations, actions, rewards, alive)

    init = states, jnp.ones(num_episodes, bool)
    keys = jr.split(step_key, (num_steps, 2))
    # Hashing is many tiny operations: all keys at once take half the time of a step's.
    action_keys = jax.vmap(lambda key: jr.split(key, num_episodes))(keys[:, 0])
    (states, alive), taken = jax.lax.scan(step, init, (action_keys, keys[:, 1]))
    observations, actions, rewards, mask = jax.tree.map(
        lambda leaf: jnp.swapaxes(leaf, 0, 1), taken
    )
    last = jax.vmap(environment.observe)(states)
    observations = jnp.concatenate([observations, last[:, None]], axis=1)
    return Trajectories(observations, actions, mask, ~alive, rewards)
