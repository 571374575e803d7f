"""Rewards `r(observation, action)`: tables, features, quadratic forms, networks."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from hyperirl.networks import MLP, Normalizer, masked_normalizer
from hyperirl.spaces import ActionSpace, Discrete
from hyperirl.trajectories import Trajectories, steps_taken


class AbstractReward(eqx.Module):
    """A differentiable function of one observation and one action."""

    @abc.abstractmethod
    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The reward of taking `action` after seeing `observation`."""


class TableReward(AbstractReward):
    """One number for each state and action; observations are one-hot states."""

    table: Float[Array, "states actions"]

    def __call__(
        self, observation: Float[Array, " states"], action: Int[Array, ""]
    ) -> Float[Array, ""]:
        """`table[state, action]`."""
        return observation @ self.table[:, action]


class LinearReward(AbstractReward):
    """`weights . features(observation, action)`."""

    weights: Float[Array, " features"]
    features: Callable = eqx.field(static=True)

    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The weighted sum of the features."""
        return self.weights @ self.features(observation, action)


class QuadraticReward(AbstractReward):
    """`-(s' Q s + a' R a)` with `Q = state_root state_root'` and `R` likewise.

    The roots keep both costs positive semi-definite, so that every value of the
    parameters is a well-posed control problem.
    """

    state_root: Float[Array, "obs obs"]
    action_root: Float[Array, "act act"]

    @classmethod
    def from_costs(cls, state_cost: Array, action_cost: Array) -> "QuadraticReward":
        """The reward with the given positive definite `Q` and `R`."""
        return cls(_root("Q", state_cost), _root("R", action_cost))

    @property
    def state_cost(self) -> Float[Array, "obs obs"]:
        """`Q`."""
        return self.state_root @ self.state_root.T

    @property
    def action_cost(self) -> Float[Array, "act act"]:
        """`R`."""
        return self.action_root @ self.action_root.T

    def __call__(
        self, observation: Float[Array, " obs"], action: Float[Array, " act"]
    ) -> Float[Array, ""]:
        """Minus the cost."""
        state_cost = jnp.sum((observation @ self.state_root) ** 2)
        return -state_cost - jnp.sum((action @ self.action_root) ** 2)


def _root(name: str, cost: Float[Array, "n n"]) -> Float[Array, "n n"]:
    root = jnp.linalg.cholesky(cost)
    return eqx.error_if(
        root,
        jnp.isnan(root).any(),
        f"The cost {name} is not positive definite, so it has no root. Add a small "
        "multiple of the identity.",
    )


class MLPReward(AbstractReward):
    """A network on the observation and the action (one-hot if discrete).

    `clamp` limits the output to `[-clamp, clamp]`, as the paper does.
    """

    network: MLP
    num_actions: int | None = eqx.field(static=True)  # None: actions are vectors.
    normalizer: Normalizer | None = None  # Of the observation.
    clamp: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.clamp is not None and not self.clamp > 0:
            raise ValueError(
                f"`clamp` must be positive, got {self.clamp}; None for no limit."
            )

    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The network's output, clamped."""
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        if self.num_actions is not None:
            action = jax.nn.one_hot(action, self.num_actions, dtype=observation.dtype)
        value = self.network(jnp.concatenate([observation, action]))[0]
        return value if self.clamp is None else jnp.clip(value, -self.clamp, self.clamp)


def mlp_reward(
    observation_size: int,
    action_space: ActionSpace,
    *,
    key: PRNGKeyArray,
    hidden: Sequence[int] = (32, 32),
    clamp: float | None = None,
    normalizer: Normalizer | None = None,
    level: float = 0.0,
    dtype: DTypeLike = jnp.float32,
) -> MLPReward:
    """A reward network with tanh hidden layers, near `level` at the start."""
    discrete = isinstance(action_space, Discrete)
    size = action_space.num_actions if discrete else action_space.size
    sizes = (observation_size + size, *hidden, 1)
    network = MLP(sizes, key=key, output_gain=0.01, dtype=dtype)
    bias = jnp.full((1,), level, dtype)
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, bias)
    return MLPReward(network, size if discrete else None, normalizer, clamp)


def fit_normalizer(trajectories: Trajectories) -> Normalizer:
    """Mean and scale of the observations in which actions were taken."""
    return masked_normalizer(trajectories.observations[:, :-1], trajectories.mask)


def rewards_of(
    reward: Callable, trajectories: Trajectories
) -> Float[Array, "episodes steps"]:
    """The reward of every step taken; 0 in the padding."""
    per_step = jax.vmap(jax.vmap(reward))
    return jnp.where(trajectories.mask, per_step(*steps_taken(trajectories)), 0.0)
