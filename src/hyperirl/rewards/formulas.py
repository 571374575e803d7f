"""Rewards that are formulas: tables, weighted features, quadratic forms."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from hyperirl.describing import Fields, describe_array
from hyperirl.rewards.reward import AbstractReward
from hyperirl.spaces import Box, Discrete


class TableReward(AbstractReward):
    """One number for each state and action; observations are one-hot states."""

    kind: ClassVar[str] = "table"
    table: Float[Array, "states actions"]

    def value(
        self, observation: Float[Array, " states"], action: Int[Array, ""]
    ) -> Float[Array, ""]:
        """`table[state, action]`."""
        return observation @ self.table[:, action]

    @property
    def observation_size(self) -> int:
        return self.table.shape[0]

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.table.shape[1])

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {"table": describe_array(self.table)}

    @classmethod
    def rebuild(cls, fields: Fields) -> "TableReward":
        """From plain values."""
        return cls(fields.array("table", 2))


class LinearReward(AbstractReward):
    """`weights . features(observation, action)`."""

    weights: Float[Array, " features"]
    features: Callable = eqx.field(static=True)

    def value(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The weighted sum of the features."""
        return self.weights @ self.features(observation, action)


class QuadraticReward(AbstractReward):
    """`-(s' Q s + a' R a)` with `Q = state_root state_root'` and `R` likewise.

    The roots keep both costs positive semi-definite, so that every value of the
    parameters is a well-posed control problem.
    """

    kind: ClassVar[str] = "quadratic"
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

    def value(
        self, observation: Float[Array, " obs"], action: Float[Array, " act"]
    ) -> Float[Array, ""]:
        """Minus the cost."""
        state_cost = jnp.sum((observation @ self.state_root) ** 2)
        return -state_cost - jnp.sum((action @ self.action_root) ** 2)

    @property
    def observation_size(self) -> int:
        return self.state_root.shape[0]

    @property
    def action_space(self) -> Box:
        return Box(self.action_root.shape[0])

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        roots = {"state_root": self.state_root, "action_root": self.action_root}
        return {name: describe_array(root) for name, root in roots.items()}

    @classmethod
    def rebuild(cls, fields: Fields) -> "QuadraticReward":
        """From plain values."""
        roots = [fields.array(name, 2) for name in ("state_root", "action_root")]
        if any(root.shape[0] != root.shape[1] for root in roots):
            raise ValueError("a root is not a square matrix")
        return cls(*roots)


def _root(name: str, cost: Float[Array, "n n"]) -> Float[Array, "n n"]:
    root = jnp.linalg.cholesky(cost)
    return eqx.error_if(
        root,
        jnp.isnan(root).any(),
        f"The cost {name} is not positive definite, so it has no root. Add a small "
        "multiple of the identity.",
    )
