"""Rewards that are polynomials of degree 2: few numbers, the same shape everywhere.

A network can pay for anything near the demonstrations and for anything else away from
them, where a policy that starts afresh begins. A polynomial cannot: what it learns of a
speed or an angle near the demonstrations holds everywhere.

An additive one is simpler still. It is linear in the observation, so more of what is
good is better from wherever one starts, and no policy gets stuck on a hill of it. For
that the normalizer has to know where policies start, too.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.describing import Fields, describe_array
from hyperirl.networks import Normalizer
from hyperirl.rewards.reward import AbstractReward
from hyperirl.spaces import ActionSpace, Box, Discrete

REACH = 2.0  # Standard deviations from the mean; beyond them nothing changes.


class PolynomialReward(AbstractReward):
    """`weights . [1, z, products of z]`, `z` the normalized observation and action.

    If it is not `mixed`, the only products are the squares of an action's numbers: the
    reward is a sum of what each input pays by itself. Where actions are choices, `z` is
    the observation, and each has its own weights. An input counts as at most two
    standard deviations from its mean: what is far from all that was seen pays no more
    than the edge of it.
    """

    kind: ClassVar[str] = "polynomial"
    weights: Float[Array, "rows terms"]
    normalizer: Normalizer
    action_size: int | None = eqx.field(static=True)  # None: actions are choices.
    mixed: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        rows, terms = self.weights.shape
        size, of_action = self.normalizer.mean.shape[0], self.action_size
        expected = num_terms(size, of_action, self.mixed)
        if terms != expected:
            raise ValueError(
                f"A polynomial of {size} inputs has {expected} terms, and the weights "
                f"are for {terms}."
            )
        if of_action is not None and not (rows == 1 and 1 <= of_action < size):
            raise ValueError(
                f"The weights are for {rows} choices, and actions are vectors of "
                f"{of_action} of {size} inputs."
            )

    def value(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The polynomial."""
        if self.action_size is None:
            inputs, row = observation, action
        else:
            inputs, row = jnp.concatenate([observation, action]), 0
        z = jnp.clip(self.normalizer(inputs), -REACH, REACH)
        if self.mixed:
            products = jnp.outer(z, z)[jnp.tril_indices(z.size)]
        else:
            products = z[self.observation_size :] ** 2
        terms = jnp.concatenate([jnp.ones(1, z.dtype), z, products])
        return self.weights[row] @ terms

    @property
    def observation_size(self) -> int:
        return self.normalizer.mean.shape[0] - (self.action_size or 0)

    @property
    def action_space(self) -> ActionSpace:
        if self.action_size is None:
            return Discrete(self.weights.shape[0])
        return Box(self.action_size)

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "weights": describe_array(self.weights),
            "normalizer": self.normalizer.describe(),
            "action_size": self.action_size,
            "mixed": self.mixed,
        }

    @classmethod
    def rebuild(cls, fields: Fields) -> "PolynomialReward":
        """From plain values."""
        return cls(
            fields.array("weights", 2),
            fields.part("normalizer", Normalizer),
            fields.take("action_size", int, type(None)),
            fields.take("mixed", bool),
        )


def num_terms(size: int, action_size: int | None, mixed: bool) -> int:
    """Of a polynomial of degree 2 in so many inputs."""
    products = size * (size + 1) // 2 if mixed else action_size or 0
    return 1 + size + products


def polynomial_reward(
    action_space: ActionSpace,
    normalizer: Normalizer,
    *,
    level: float = 0.0,
    mixed: bool = True,
) -> PolynomialReward:
    """A reward that is `level` everywhere.

    Args:
        action_space: What the actions are.
        normalizer: Of the observation, and of the action behind it where that is a
            vector (`lstd.input_normalizer`); of all states that training passes.
        level: What every step pays.
        mixed: Whether inputs are multiplied with each other.
    """
    size = None if isinstance(action_space, Discrete) else action_space.size
    rows = action_space.num_actions if isinstance(action_space, Discrete) else 1
    terms = num_terms(normalizer.mean.shape[0], size, mixed)
    weights = jnp.zeros((rows, terms), normalizer.mean.dtype).at[:, 0].set(level)
    return PolynomialReward(weights, normalizer, size, mixed)
