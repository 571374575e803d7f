"""Pendulum: swing a pole up and hold it there, as in Gymnasium's `Pendulum-v1`."""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.environments.environment import AbstractEnvironment, parameter
from hyperirl.spaces import Box


class Pendulum(AbstractEnvironment):
    """The state is `[angle, angular velocity]`; the angle is seen as cosine and sine.

    Torque beyond 2 has the effect, and the cost, of 2.
    """

    gravity: Float[Array, ""] = parameter(10.0)
    mass: Float[Array, ""] = parameter(1.0)
    length: Float[Array, ""] = parameter(1.0)
    time_step: Float[Array, ""] = parameter(0.05)
    max_speed: Float[Array, ""] = parameter(8.0)
    horizon: int = eqx.field(static=True, default=200)

    @property
    def observation_size(self) -> int:
        return 3

    @property
    def action_space(self) -> Box:
        """The torque."""
        return Box(1, -2.0, 2.0)

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, "2"]:
        """Any angle, up to one radian a second."""
        high = jnp.array([math.pi, 1.0], jnp.float32)
        return jr.uniform(key, (2,), jnp.float32, -high, high)

    def observe(self, state: Float[Array, "2"]) -> Float[Array, "3"]:
        return jnp.stack([jnp.cos(state[0]), jnp.sin(state[0]), state[1]])

    def state_of(self, observation: Float[Array, "3"]) -> Float[Array, "2"]:
        cos, sin, velocity = observation
        return jnp.stack([jnp.arctan2(sin, cos), velocity])

    def _torque(self, action: Float[Array, "1"]) -> Float[Array, ""]:
        return jnp.clip(action[0], self.action_space.low, self.action_space.high)

    def reward(self, observation: Float[Array, "3"], action: Float[Array, "1"]):
        """`-(angle^2 + 0.1 velocity^2 + 0.001 torque^2)`."""
        angle = jnp.arctan2(observation[1], observation[0])
        cost = angle**2 + 0.1 * observation[2] ** 2 + 0.001 * self._torque(action) ** 2
        return -cost

    def advance(self, state: Float[Array, "2"], action: Float[Array, "1"], *, key):
        """One semi-implicit Euler step; it never terminates."""
        del key  # The dynamics are deterministic.
        angle, speed = state
        gravity = 3 * self.gravity / (2 * self.length) * jnp.sin(angle)
        torque = 3.0 / (self.mass * self.length**2) * self._torque(action)
        speed = speed + (gravity + torque) * self.time_step
        speed = jnp.clip(speed, -self.max_speed, self.max_speed)
        angle = angle + speed * self.time_step
        return jnp.stack([angle, speed]), jnp.zeros((), bool)
