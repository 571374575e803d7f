"""The functional environment protocol.

An environment is a frozen pytree: its dynamics parameters are arrays, so they can be
changed (for transfer) without compiling anything again. It acts on one state; callers
`vmap`. It never truncates: cutting an episode at `horizon` is the rollout's business.

Six things are needed: `observation_size`, `action_space`, `horizon`, `reset`, `observe`
and `advance`. Two more are capabilities, which callers ask for and can do without: the
true `reward` (`has_reward`), and `state_of` (`can_start_anywhere`).
"""

import abc
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from hyperirl.spaces import ActionSpace


def parameter(default, *, keep_type: bool = False):
    """A field for numbers of the dynamics: an array in `float32`.

    Args:
        default: Its value if none is given.
        keep_type: Whether JAX arrays keep their type: for environments that can be
            simulated, or solved, in `float64`.
    """

    def as_array(value):
        keep = keep_type and isinstance(value, jax.Array)
        return jnp.asarray(value, value.dtype if keep else jnp.float32)

    return eqx.field(converter=as_array, default_factory=lambda: as_array(default))


def check_shapes_and_types(environment, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises unless the named fields have these shapes and all the same type."""
    fields = {name: getattr(environment, name) for name in shapes}
    for name, shape in shapes.items():
        if fields[name].shape != shape:
            raise ValueError(
                f"`{name}` has shape {fields[name].shape}, but beside the others it "
                f"must have shape {shape}."
            )
    if len({field.dtype for field in fields.values()}) > 1:
        types = ", ".join(f"{name}: {field.dtype}" for name, field in fields.items())
        raise ValueError(
            f"All arrays must have the same type, got {types}. Arrays of JAX keep "
            "theirs; anything else, and every default, is float32."
        )


class Transition(eqx.Module):
    """What one step leads to."""

    state: PyTree[Array]
    reward: Float[Array, ""] | None  # The true one, if it is known.
    terminated: Bool[Array, ""]


class AbstractWorld(eqx.Module):
    """Anything in which episodes can be played, compiled or stepped.

    One that `is_stepped` lives outside compiled programs. It brings its own `start`,
    `act` and `episodes`; see `hyperirl.worlds`.
    """

    horizon: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def observation_size(self) -> int:
        """Length of the observation vector."""

    @property
    @abc.abstractmethod
    def action_space(self) -> ActionSpace:
        """What actions are."""

    @property
    @abc.abstractmethod
    def has_reward(self) -> bool:
        """Whether the true reward is known."""

    @property
    @abc.abstractmethod
    def can_start_anywhere(self) -> bool:
        """Whether an episode can start in a state that was observed."""

    @property
    def is_stepped(self) -> bool:
        """Whether it is stepped by the host rather than compiled."""
        return False

    @property
    def num_envs(self) -> int | None:
        """The only number of environments that can act at once; None: any."""
        return None


class AbstractEnvironment(AbstractWorld):
    """A simulated task that can be compiled."""

    @abc.abstractmethod
    def reset(self, *, key: PRNGKeyArray) -> PyTree[Array]:
        """A first state."""

    @abc.abstractmethod
    def observe(self, state: PyTree[Array]) -> Float[Array, " obs"]:
        """What the agent sees of a state."""

    @abc.abstractmethod
    def advance(
        self, state: PyTree[Array], action: Array, *, key: PRNGKeyArray
    ) -> tuple[PyTree[Array], Bool[Array, ""]]:
        """The next state, and whether the task is over there."""

    def reward(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The true reward of an action, in a state that looks like `observation`.

        Optional. It is looked at to judge what was learned, and never to learn.
        """
        raise NotImplementedError(_absent(self, "reward", "its true reward"))

    def state_of(self, observation: Float[Array, " obs"]) -> PyTree[Array]:
        """The state that looks like `observation`.

        Optional. With it, the inner solver can start episodes where the demonstrations
        have been.
        """
        raise NotImplementedError(_absent(self, "state_of", "the state of what it saw"))

    def step(
        self, state: PyTree[Array], action: Array, *, key: PRNGKeyArray
    ) -> Transition:
        """One step, with its true reward if that is known."""
        reward = None
        if self.has_reward:
            reward = self.reward(self.observe(state), action)
        state, terminated = self.advance(state, action, key=key)
        return Transition(state, reward, terminated)

    @property
    def has_reward(self) -> bool:
        return type(self).reward is not AbstractEnvironment.reward

    @property
    def can_start_anywhere(self) -> bool:
        return type(self).state_of is not AbstractEnvironment.state_of


def _absent(environment: AbstractEnvironment, method: str, what: str) -> str:
    name = type(environment).__name__
    return f"{name} does not say {what}; write its method `{method}`."
