"""Trajectories from an environment and a policy: one `scan`, any number of episodes."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from hyperirl.environments import AbstractEnvironment, AbstractWorld
from hyperirl.policies import AbstractActor
from hyperirl.programs import compiled
from hyperirl.trajectories import Trajectories

_GROUPS, _GROUP_SIZE = 4, 128  # Fewer episodes a group are not worth the threads.


def rollout(
    environment: AbstractWorld,
    policy: AbstractActor,
    num_episodes: int,
    *,
    key: PRNGKeyArray,
    horizon: int | None = None,
    record_rewards: bool = True,
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
        record_rewards: Whether to keep the true rewards, where they are known.
    """
    num_steps = environment.horizon if horizon is None else horizon
    if num_episodes < 1 or num_steps < 1:
        raise ValueError(
            "A rollout needs at least one episode of at least one step, got "
            f"num_episodes={num_episodes} and a horizon of {num_steps}."
        )
    if environment.is_stepped:
        world: Any = environment
        return world.episodes(
            policy,
            num_episodes,
            key=key,
            horizon=num_steps,
            record_rewards=record_rewards,
        )
    assert isinstance(environment, AbstractEnvironment)
    return _rollout(environment, policy, num_episodes, num_steps, key, record_rewards)


@functools.partial(compiled, level=1)
def _rollout(
    environment: AbstractEnvironment,
    policy: AbstractActor,
    num_episodes: int,
    num_steps: int,
    key: PRNGKeyArray,
    record_rewards: bool,
) -> Trajectories:
    reset_key, step_key = jr.split(key)
    states = jax.vmap(lambda key: environment.reset(key=key))(
        jr.split(reset_key, num_episodes)
    )

    choose = _choose_in_groups(policy, num_episodes)

    def one(state, alive, action, dynamics_key):
        transition = environment.step(state, action, key=dynamics_key)
        keep = lambda new, old: jnp.where(alive, new, old)
        next_state = jax.tree.map(keep, transition.state, state)
        reward = None
        if record_rewards and transition.reward is not None:
            reward = jnp.where(alive, transition.reward, 0.0)
        return next_state, alive & ~transition.terminated, reward

    def play(states, alive, observations, chance):
        noise, dynamics_key = chance
        # Split here, so that deterministic dynamics never have theirs computed.
        dynamics_keys = jr.split(dynamics_key, num_episodes)
        actions = choose(observations, noise)
        states, alive, rewards = jax.vmap(one)(states, alive, actions, dynamics_keys)
        return states, alive, actions, rewards

    def rest(states, alive, observations, chance):
        nothing = jax.eval_shape(play, states, alive, observations, chance)[2:]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), nothing)
        return states, alive, *zeros

    def step(carry, chance):
        states, alive = carry
        observations = jax.vmap(environment.observe)(states)
        states, still_alive, actions, rewards = jax.lax.cond(
            jnp.any(alive), play, rest, states, alive, observations, chance
        )
        return (states, still_alive), (observations, actions, rewards, alive)

    init = states, jnp.ones(num_episodes, bool)
    keys = jr.split(step_key, (num_steps, 2))
    # Hashing is many tiny operations: in the loop it would be a fourth of the time.
    action_keys = jax.vmap(lambda key: jr.split(key, num_episodes))(keys[:, 0])
    noise = jax.vmap(jax.vmap(lambda key: policy.draw_noise(key=key)))(action_keys)
    (states, alive), taken = jax.lax.scan(step, init, (noise, keys[:, 1]))
    observations, actions, rewards, mask = jax.tree.map(
        lambda leaf: jnp.swapaxes(leaf, 0, 1), taken
    )
    last = jax.vmap(environment.observe)(states)
    observations = jnp.concatenate([observations, last[:, None]], axis=1)
    return Trajectories(observations, actions, mask, ~alive, rewards)


def _choose_in_groups(policy: AbstractActor, num_episodes: int) -> Callable:
    """The actions for many observations, by as many copies of the policy as groups.

    On CPU, XLA gives the products of a batch of matrices to all cores, and a single
    one of this size to one of them.
    """
    act = lambda policy, observation, noise: policy.act(observation, noise)
    many = eqx.filter_vmap(act, in_axes=(None, 0, 0))
    if num_episodes < _GROUPS * _GROUP_SIZE or num_episodes % _GROUPS:
        return lambda observations, noise: many(policy, observations, noise)
    arrays, rest = eqx.partition(policy, eqx.is_array)
    copy = lambda x: jnp.broadcast_to(x, (_GROUPS, *x.shape))
    copies = eqx.combine(jax.tree.map(copy, arrays), rest)
    deal = lambda x: x.reshape(_GROUPS, -1, *x.shape[1:])
    groups = eqx.filter_vmap(many, in_axes=(eqx.if_array(0), 0, 0))

    def choose(observations, noise):
        actions = groups(copies, deal(observations), deal(noise))
        return actions.reshape(num_episodes, *actions.shape[2:])

    return choose
