"""CartPole to practice in: the same soft-optimal policy, easier to learn.

A good expert rarely sees the states where it matters most what it does: near the limits
of angle and track. Trained from the usual start alone it forgets what to do there, and
its failures come and go. So many episodes start there. Where episodes start does not
change the soft-optimal policy.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractEnvironment, AbstractWorld, CartPole
from hyperirl.problem import Problem
from hyperirl.spaces import Discrete


class ScatteredCartPole(AbstractEnvironment):
    """CartPole whose episodes often start away from rest.

    Without termination a lost cart runs off to infinity, where no value function is any
    good. Here it terminates far beyond the limits, and what uniform actions without
    any reward would have been worth from there on is paid out: `lost_value`.
    """

    task: CartPole
    spread: Float[Array, "4"]  # Largest distance from the usual start.
    chance: Float[Array, ""]  # Of starting there.
    lost_value: Float[Array, ""]
    horizon: int = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        return 4

    @property
    def action_space(self) -> Discrete:
        return self.task.action_space

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, "4"]:
        usual_key, move_key, choice_key = jr.split(key, 3)
        usual = self.task.reset(key=usual_key)
        move = jr.uniform(move_key, (4,), jnp.float32, -self.spread, self.spread)
        scattered = jr.bernoulli(choice_key, self.chance)
        return jnp.where(scattered, usual + move, usual)

    def observe(self, state: Float[Array, "4"]) -> Float[Array, "4"]:
        return state

    def state_of(self, observation: Float[Array, "4"]) -> Float[Array, "4"]:
        return observation

    def lost(self, state: Float[Array, "4"]) -> Bool[Array, ""]:
        """Whether the cart is two tracks away, or the pole beyond 60 degrees."""
        far = jnp.abs(state[0]) > 2 * self.task.track_limit
        return far | (jnp.abs(state[2]) > 5 * self.task.angle_limit)

    def reward(self, observation: Float[Array, "4"], action: Int[Array, ""]):
        reward = self.task.reward(observation, action)
        if self.task.terminates:
            return reward
        key = jr.key(0)  # The dynamics are deterministic.
        after, _ = self.task.advance(observation, action, key=key)
        return reward + jnp.where(self.lost(after), self.lost_value, 0.0)

    def advance(self, state: Float[Array, "4"], action: Int[Array, ""], *, key):
        after, terminated = self.task.advance(state, action, key=key)
        return after, terminated | self.lost(after)


def scattered(
    environment: AbstractWorld, problem: Problem, share: float
) -> ScatteredCartPole:
    """Where a policy trains after a share of its training.

    At first it learns what to do everywhere: starts are all over the track, at any
    speed and angle. Then it is polished nearer to where it goes.
    """
    assert isinstance(environment, CartPole)  # As the tasks that use it are made.
    wide = share < 1 / 3
    limits = jnp.stack([environment.track_limit, environment.angle_limit])
    position, angle = limits * (0.9 if wide else 0.7)
    velocity = jnp.full_like(position, 1.0 if wide else 0.5)
    entropy = problem.temperature * math.log(2.0)
    return ScatteredCartPole(
        task=environment,
        spread=jnp.stack([position, velocity, angle, velocity]),
        chance=jnp.full_like(position, 0.5 if wide else 0.25),
        lost_value=problem.discount * entropy / (1 - problem.discount),
        horizon=max(environment.horizon // 2, 1),
    )
