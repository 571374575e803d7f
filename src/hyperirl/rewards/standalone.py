"""Rewards to maximize alone, without an entropy beside them."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl import describing
from hyperirl.networks import AbstractData
from hyperirl.rewards.reward import AbstractReward
from hyperirl.spaces import ActionSpace, uniform_entropy
from hyperirl.steps import dtype_of


class Level(AbstractData):
    """A number that is never trained."""

    level: Float[Array, ""]


class StandaloneReward(AbstractReward):
    """`soft + level`: a reward that makes sense without an entropy beside it.

    What is learned is `soft`, and the policy is paid `soft - alpha log pi`. Against the
    uniform policy `u` that is `(soft + level) - alpha log(pi / u)`, with the level
    `alpha log |A|`. So a learner that knows nothing of temperatures maximizes
    `soft + level`: it leaves out only how far the policy is from uniform. The level
    matters where episodes end early: it decides whether staying alive pays.
    """

    kind: ClassVar[str] = "standalone"
    learned: AbstractReward
    added: Level

    def __init__(self, soft: AbstractReward, level: float | Float[Array, ""]):
        """Adds `level` to every step of `soft`, or of the soft part of it."""
        self.learned = soft.soft
        self.added = Level(jnp.asarray(level))

    @property
    def soft(self) -> AbstractReward:
        return self.learned

    @property
    def level(self) -> Float[Array, ""]:
        """What is added to every step; never trained."""
        return self.added.level

    def value(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The soft reward and the level."""
        value = self.soft.value(observation, action)
        return value + self.level.astype(value.dtype)

    @property
    def observation_size(self) -> int | None:
        return self.soft.observation_size

    @property
    def action_space(self) -> ActionSpace | None:
        return self.soft.action_space

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        level = describing.describe_array(self.level)
        return {"soft": describing.describe(self.soft), "level": level}

    @classmethod
    def rebuild(cls, fields: describing.Fields) -> "StandaloneReward":
        """From plain values."""
        soft = fields.kind_of("soft", AbstractReward)
        if isinstance(soft, cls):
            raise ValueError("a level is added to a level")
        return cls(soft, fields.array("level", 0))


def standalone(
    reward: AbstractReward,
    space: ActionSpace,
    temperature: float | Float[Array, ""],
) -> AbstractReward:
    """The reward to maximize alone in place of a reward and `temperature` * entropy.

    Where all policies have the entropy 0, or none is uniform as in a box without
    bounds, it is the soft reward itself.
    """
    entropy = uniform_entropy(space)
    if entropy == 0:
        return reward.soft
    level = jnp.asarray(temperature * entropy, dtype_of(reward))
    return StandaloneReward(reward, level)
