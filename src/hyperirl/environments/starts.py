"""The same task, often entered elsewhere: where the demonstrations have been."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments.environment import AbstractEnvironment
from hyperirl.spaces import ActionSpace


class OtherStarts(AbstractEnvironment):
    """The same environment with shorter episodes, a share of which start elsewhere.

    The soft-optimal policy is the same wherever episodes start. But a policy that is
    trained on its own states alone is at the mercy of its network everywhere else, and
    the demonstrations ask what it does in the expert's states.
    """

    task: AbstractEnvironment
    observations: Float[Array, "starts obs"]
    count: Int[Array, ""]  # How many of them there are; what follows is padding.
    chance: Float[Array, ""]
    horizon: int = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        return self.task.observation_size

    @property
    def action_space(self) -> ActionSpace:
        return self.task.action_space

    def reset(self, *, key: PRNGKeyArray) -> PyTree[Array]:
        """A first state of the task, or one of the others."""
        usual_key, choice_key, index_key = jr.split(key, 3)
        usual = self.task.reset(key=usual_key)
        index = jr.randint(index_key, (), 0, self.count)
        other = self.task.state_of(self.observations[index])
        there = jr.bernoulli(choice_key, self.chance)
        return jax.tree.map(lambda a, b: jnp.where(there, a, b), other, usual)

    def observe(self, state: PyTree[Array]) -> Float[Array, " obs"]:
        return self.task.observe(state)

    def state_of(self, observation: Float[Array, " obs"]) -> PyTree[Array]:
        return self.task.state_of(observation)

    def reward(self, observation: Float[Array, " obs"], action: Array):
        return self.task.reward(observation, action)

    @property
    def has_reward(self) -> bool:
        return self.task.has_reward

    def advance(
        self, state: PyTree[Array], action: Array, *, key: PRNGKeyArray
    ) -> tuple[PyTree[Array], Bool[Array, ""]]:
        return self.task.advance(state, action, key=key)
