"""LQR: linear dynamics, quadratic cost, Gaussian noise.

The default is the paper's system. Its soft-optimal policy is known in closed form (see
`hyperirl.exact.lqr`) as long as actions are not clipped and no state ends the episode.
"""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.environments.environment import (
    AbstractEnvironment,
    check_shapes_and_types,
    parameter,
)
from hyperirl.spaces import Box

_A = [[1, 0.1, 0, 0], [0, 1, 0, 0.02], [0, 0, 1, 0.1], [0, 0.02, 0, 1]]
_B = [[0, 0], [0.1, 0], [0, 0], [0, 0.1]]


class LQR(AbstractEnvironment):
    """`s' = A s + B a + noise`, with reward `-(s' Q s + a' R a)`.

    The covariances of noise and first state are `noise_root noise_root'` and
    `initial_root initial_root'`.

    `max_action` clips every component of an action before it acts and is paid for, and
    `max_norm` ends the episode when the state leaves that ball. Both are off (infinite)
    by default, which keeps the closed form exact; the paper has them at 5 and 50.
    """

    A: Float[Array, "obs obs"] = parameter(_A, keep_type=True)
    B: Float[Array, "obs act"] = parameter(_B, keep_type=True)
    Q: Float[Array, "obs obs"] = parameter(np.diag([1, 0.1, 1, 0.1]), keep_type=True)
    R: Float[Array, "act act"] = parameter(0.1 * np.eye(2), keep_type=True)
    noise_root: Float[Array, "obs obs"] = parameter(
        1e-3**0.5 * np.eye(4), keep_type=True
    )
    initial_root: Float[Array, "obs obs"] = parameter(
        np.diag([1, 0.5, 1, 0.5]), keep_type=True
    )
    max_action: float = eqx.field(static=True, default=float("inf"))
    max_norm: float = eqx.field(static=True, default=float("inf"))
    horizon: int = eqx.field(static=True, default=100)

    def __check_init__(self):
        obs, act = self.B.shape
        shapes = {
            "A": (obs, obs),
            "B": (obs, act),
            "Q": (obs, obs),
            "R": (act, act),
            "noise_root": (obs, obs),
            "initial_root": (obs, obs),
        }
        check_shapes_and_types(self, shapes)

    @property
    def observation_size(self) -> int:
        return self.B.shape[0]

    @property
    def action_space(self) -> Box:
        return Box(self.B.shape[1], -self.max_action, self.max_action)

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, " obs"]:
        """A draw from the initial Gaussian."""
        return self._gaussian(self.initial_root, key)

    def observe(self, state: Float[Array, " obs"]) -> Float[Array, " obs"]:
        return state

    def state_of(self, observation: Float[Array, " obs"]) -> Float[Array, " obs"]:
        return observation

    def reward(self, observation: Float[Array, " obs"], action: Float[Array, " act"]):
        action = jnp.clip(action, -self.max_action, self.max_action)
        return -(observation @ self.Q @ observation + action @ self.R @ action)

    def advance(
        self, state: Float[Array, " obs"], action: Float[Array, " act"], *, key
    ):
        action = jnp.clip(action, -self.max_action, self.max_action)
        noise = self._gaussian(self.noise_root, key)
        state = self.A @ state + self.B @ action + noise
        return state, jnp.linalg.norm(state) > self.max_norm

    def _gaussian(self, root: Array, key: PRNGKeyArray) -> Float[Array, " obs"]:
        return root @ jr.normal(key, root.shape[1:], root.dtype)


def random_lqr(
    rng: np.random.Generator, num_states: int = 3, num_actions: int = 2
) -> LQR:
    """A system that is slightly unstable if left alone, in `float64`."""
    near = lambda size: np.eye(size) + 0.3 * rng.normal(size=(size, size))
    square = lambda root: root @ root.T
    A = rng.normal(size=(num_states, num_states))
    return LQR(
        A=jnp.asarray(1.02 * A / np.max(np.abs(np.linalg.eigvals(A)))),
        B=jnp.asarray(rng.normal(size=(num_states, num_actions))),
        Q=jnp.asarray(square(near(num_states))),
        R=jnp.asarray(square(near(num_actions))),
        noise_root=jnp.asarray(0.2 * near(num_states)),
        initial_root=jnp.asarray(near(num_states)),
    )
