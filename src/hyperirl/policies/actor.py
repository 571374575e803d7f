"""Whoever acts: all that a rollout asks for."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray


class AbstractActor(eqx.Module):
    """Anything that chooses actions. A policy also knows how likely they are."""

    # Not `Numbers`: an override need not take more than rollouts give it.
    @abc.abstractmethod
    def sample(self, observation: Any, *, key: PRNGKeyArray) -> Array:
        """An action for every observation."""

    def draw_noise(self, *, key: PRNGKeyArray) -> Array:
        """What `act` needs to choose an action; here the key, to be used then.

        Hashing is many tiny operations, so a rollout calls this for all its steps at
        once, before it takes the first.
        """
        return key

    def act(self, observation: Float[Array, " obs"], noise: Array) -> Array:
        """The action `sample` would choose with the key that the noise is from."""
        return self.sample(observation, key=noise)
