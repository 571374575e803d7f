"""Rewards that are networks."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from hyperirl.describing import Fields
from hyperirl.networks import MLP, Normalizer, masked_normalizer
from hyperirl.rewards.reward import AbstractReward
from hyperirl.spaces import ActionSpace, Box, Discrete
from hyperirl.trajectories import Trajectories


class MLPReward(AbstractReward):
    """A network on the observation and the action (one-hot if discrete).

    `clamp` limits the output to `[-clamp, clamp]`, as the paper does.
    """

    kind: ClassVar[str] = "mlp"
    network: MLP
    num_actions: int | None = eqx.field(static=True)  # None: actions are vectors.
    normalizer: Normalizer | None = None  # Of the observation.
    clamp: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.clamp is not None and not 0 < self.clamp < math.inf:
            raise ValueError(
                f"`clamp` must be positive and finite, got {self.clamp}; None for no "
                "limit."
            )
        size, inputs = self.num_actions, self.network.input_size
        room = inputs - (1 if size is None else size)  # For the observation.
        if self.network.output_size != 1 or room < 1 or (size is not None and size < 1):
            raise ValueError(
                "The network does not map an observation and an action to 1 number: "
                f"it maps {inputs} to {self.network.output_size}, with "
                f"num_actions={size}."
            )
        if self.normalizer is not None:
            seen = self.normalizer.mean.shape[0]
            if seen > room or (size is not None and seen < room):
                raise ValueError(
                    f"The normalizer, of {seen} numbers, does not fit the network, "
                    f"which has room for {room}."
                )

    def value(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The network's output, clamped."""
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        if self.num_actions is not None:
            action = jax.nn.one_hot(action, self.num_actions, dtype=observation.dtype)
        inputs = jnp.concatenate([observation, action])
        if inputs.size != self.network.input_size:
            raise ValueError(
                f"This reward reads {self.network.input_size} numbers, those of an "
                f"observation and of an action, got {observation.size} and "
                f"{action.size}."
            )
        value = self.network(inputs)[0]
        return value if self.clamp is None else jnp.clip(value, -self.clamp, self.clamp)

    @property
    def observation_size(self) -> int | None:
        """Not known where actions are vectors and nothing is normalized."""
        if self.num_actions is not None:
            return self.network.input_size - self.num_actions
        return None if self.normalizer is None else self.normalizer.mean.shape[0]

    @property
    def action_space(self) -> ActionSpace | None:
        if self.num_actions is not None:
            return Discrete(self.num_actions)
        size = self.observation_size
        return None if size is None else Box(self.network.input_size - size)

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        normalizer, clamp = self.normalizer, self.clamp
        return {
            "network": self.network.describe(),
            "num_actions": self.num_actions,
            "normalizer": None if normalizer is None else normalizer.describe(),
            "clamp": None if clamp is None else float(clamp),
        }

    @classmethod
    def rebuild(cls, fields: Fields) -> "MLPReward":
        """From plain values."""
        normalizer = lambda name: fields.part(name, Normalizer)
        return cls(
            fields.part("network", MLP),
            fields.take("num_actions", int, type(None)),
            fields.optional("normalizer", normalizer),
            fields.take("clamp", float, int, type(None)),
        )


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
