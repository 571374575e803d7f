"""CartPole: balance a pole on a cart, as in Gymnasium's `CartPole-v1`."""

import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperirl.environments.environment import AbstractEnvironment, parameter
from hyperirl.spaces import Discrete

_MAX_SPEED = 5.0  # That is observed without termination, in m/s and rad/s.


class CartPole(AbstractEnvironment):
    """The state is `[x, x velocity, angle, angular velocity]`.

    With `terminates` the episode ends when the pole falls or the cart leaves the track,
    and the reward is 1 a step. Without, it goes on, and the reward is 1 while the pole
    is up and the cart on the track: then the return is more than the episode's length.
    The angle is then wrapped to [-pi, pi], and the observation ends at twice the
    limits: a cart that rolls on for hundreds of meters after the fall would else decide
    the scale of everything that is learned.
    """

    gravity: Float[Array, ""] = parameter(9.8)
    cart_mass: Float[Array, ""] = parameter(1.0)
    pole_mass: Float[Array, ""] = parameter(0.1)
    half_length: Float[Array, ""] = parameter(0.5)
    force: Float[Array, ""] = parameter(10.0)
    time_step: Float[Array, ""] = parameter(0.02)
    angle_limit: Float[Array, ""] = parameter(12 * math.pi / 180)
    track_limit: Float[Array, ""] = parameter(2.4)
    terminates: bool = eqx.field(static=True, default=True)
    horizon: int = eqx.field(static=True, default=500)

    @property
    def observation_size(self) -> int:
        return 4

    @property
    def action_space(self) -> Discrete:
        """Push left, push right."""
        return Discrete(2)

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, "4"]:
        """Near rest, upright, in the middle."""
        return jr.uniform(key, (4,), jnp.float32, -0.05, 0.05)

    def observe(self, state: Float[Array, "4"]) -> Float[Array, "4"]:
        """The state, up to where a fall is long over."""
        if self.terminates:
            return state
        speed = jnp.full_like(self.track_limit, _MAX_SPEED)
        limits = [2 * self.track_limit, speed, 2 * self.angle_limit, speed]
        return jnp.clip(state, -jnp.stack(limits), jnp.stack(limits))

    def state_of(self, observation: Float[Array, "4"]) -> Float[Array, "4"]:
        return observation

    def upright(self, state: Float[Array, "4"]) -> Bool[Array, ""]:
        """Whether the pole is up and the cart on the track."""
        on_track = jnp.abs(state[0]) <= self.track_limit
        return on_track & (jnp.abs(state[2]) <= self.angle_limit)

    def reward(self, observation: Float[Array, "4"], action: Int[Array, ""]):
        if self.terminates:
            return jnp.ones((), observation.dtype)
        return self.upright(observation).astype(observation.dtype)

    def advance(self, state: Float[Array, "4"], action: Int[Array, ""], *, key):
        """One Euler step of the equations of motion."""
        del key  # The dynamics are deterministic.
        x, velocity, angle, spin = state
        force = jnp.where(action == 1, self.force, -self.force)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        mass = self.cart_mass + self.pole_mass
        pole_moment = self.pole_mass * self.half_length
        push = (force + pole_moment * spin**2 * sin) / mass
        inertia = self.half_length * (4.0 / 3.0 - self.pole_mass * cos**2 / mass)
        angle_acceleration = (self.gravity * sin - cos * push) / inertia
        acceleration = push - pole_moment * angle_acceleration * cos / mass
        angle = angle + self.time_step * spin
        if not self.terminates:
            angle = angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))
        state = jnp.stack(
            [
                x + self.time_step * velocity,
                velocity + self.time_step * acceleration,
                angle,
                spin + self.time_step * angle_acceleration,
            ]
        )
        return state, ~self.upright(state) & self.terminates
