"""Running means of a policy's parameters: what is left when its wandering is taken out.

A solver that ends in noise walks around its solution, and the mean of where it has been
is closer to it than where it is (Polyak and Juditsky, 1992). A mean is a state that
goes through `update`, as in optax, and lives beside any solver:

    state = average.init(policy)
    state = average.update(state, policy)
    quiet = average.mean(state, policy)

`Averaged` is a solver that does this by itself.
"""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments import AbstractWorld
from hyperirl.inner.solver import (
    AbstractInnerSolver,
    Reward,
    SolveReport,
    hyperparameter,
)
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.programs import compiled


class AbstractAverage(eqx.Module):
    """A running mean of the trained parameters of a policy."""

    def at_pace(self, pace: Float[Array, ""]) -> "AbstractAverage":
        """For a problem that goes this share of the way to its end in one step."""
        return self

    @abc.abstractmethod
    def init(self, policy: AbstractPolicy) -> Any:
        """The mean of nothing."""

    @abc.abstractmethod
    def update(self, state: Any, policy: AbstractPolicy) -> Any:
        """The mean with one more policy."""

    @abc.abstractmethod
    def mean(self, state: Any, policy: AbstractPolicy) -> AbstractPolicy:
        """The policy with the mean of the parameters; as it is, if that is of none."""


class Faded(eqx.Module):
    """A mean and the weight of what it is of."""

    mean: PyTree[Array]
    weight: Float[Array, ""]


class Exponential(AbstractAverage):
    """Weights that fall by `decay` with every policy that follows, and sum to one.

    It remembers `1 / (1 - decay)` policies or so, and costs the memory of one. With a
    decay of 1 it is the mean of all.
    """

    decay: Float[Array, ""] = eqx.field(
        converter=lambda x: jnp.asarray(x, jnp.float32), default=0.9
    )

    def init(self, policy: AbstractPolicy) -> Faded:
        zeros = jax.tree.map(jnp.zeros_like, partition(policy)[0])
        return Faded(zeros, jnp.zeros((), jnp.float32))

    def update(self, state: Faded, policy: AbstractPolicy) -> Faded:
        weight = self.decay * state.weight + 1
        follow = lambda old, new: old + (new - old) / weight.astype(old.dtype)
        mean = jax.tree.map(follow, state.mean, partition(policy)[0])
        return Faded(mean, weight)

    def mean(self, state: Faded, policy: AbstractPolicy) -> AbstractPolicy:
        return _with(policy, state.mean, state.weight > 0)


class Paced(AbstractAverage):
    """A mean that forgets faster than what its policies solve moves.

    A mean lags behind. In a loop that steers by it, a lag beyond a step of full length
    makes the loop swing. So the weights fall by `speed` times the pace, which is the
    share of the way to its end that the reward goes in one step. When the reward slows
    down, the mean gets longer and quieter. It costs the memory of one policy.
    """

    pace: Float[Array, ""] = hyperparameter(1.0)
    speed: Float[Array, ""] = hyperparameter(2.0)

    def at_pace(self, pace: Float[Array, ""]) -> "Paced":
        return dataclasses.replace(self, pace=pace)

    def init(self, policy: AbstractPolicy) -> Faded:
        return self._fading.init(policy)

    def update(self, state: Faded, policy: AbstractPolicy) -> Faded:
        return self._fading.update(state, policy)

    def mean(self, state: Faded, policy: AbstractPolicy) -> AbstractPolicy:
        return self._fading.mean(state, policy)

    @property
    def _fading(self) -> Exponential:
        return Exponential(1 - jnp.minimum(1.0, self.speed * self.pace))


class Recent(eqx.Module):
    """The last policies, in a ring."""

    params: PyTree[Array]  # With the place in the ring as the first axis.
    count: Int[Array, ""]  # Of all policies so far.


class Window(AbstractAverage):
    """The plain mean of the last `size` policies; it costs their memory."""

    size: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        if self.size < 1:
            raise ValueError(
                f"A window holds at least one policy, got size={self.size}."
            )

    def init(self, policy: AbstractPolicy) -> Recent:
        # From NumPy: JAX would compile a program for each shape.
        ring = lambda x: jnp.asarray(np.zeros((self.size, *x.shape), x.dtype))
        params = jax.tree.map(ring, partition(policy)[0])
        return Recent(params, jnp.zeros((), jnp.int32))

    def update(self, state: Recent, policy: AbstractPolicy) -> Recent:
        place = state.count % self.size
        put = lambda ring, new: ring.at[place].set(new)
        params = jax.tree.map(put, state.params, partition(policy)[0])
        return Recent(params, state.count + 1)

    def mean(self, state: Recent, policy: AbstractPolicy) -> AbstractPolicy:
        held = jnp.clip(state.count, 1, self.size)  # The other places are zero.
        mean = lambda ring: jnp.sum(ring, axis=0) / held.astype(ring.dtype)
        return _with(policy, jax.tree.map(mean, state.params), state.count > 0)


def _with(policy: AbstractPolicy, mean: PyTree[Array], known: Array) -> AbstractPolicy:
    params, rest = partition(policy)
    pick = lambda new, old: jnp.where(known, new, old)
    return eqx.combine(jax.tree.map(pick, mean, params), rest)


class AveragedState(eqx.Module):
    """A solver's state, and the mean of the policies it has ended with."""

    policy: AbstractPolicy  # The mean.
    solver: Any  # Its own policy is where it goes on from.
    average: Any


class Averaged(AbstractInnerSolver):
    """Another solver, whose answer is the running mean of its answers.

    Every solve adds one policy. The solver goes on from its own last policy, which the
    report is about.
    """

    solver: AbstractInnerSolver
    average: AbstractAverage

    @property
    def steps_per_update(self) -> int:
        return self.solver.steps_per_update

    def required_policy(self, environment: AbstractWorld) -> AbstractPolicy | None:
        return self.solver.required_policy(environment)

    @property
    def in_parts(self) -> bool:
        return self.solver.in_parts

    def at_pace(self, pace: Float[Array, ""]) -> "Averaged":
        return dataclasses.replace(self, average=self.average.at_pace(pace))

    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> AveragedState:
        state = self.solver.init(environment, policy, key=key)
        return AveragedState(state.policy, state, self.average.init(policy))

    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: AveragedState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[AveragedState, SolveReport]:
        solved, report = self.solver.run(
            environment, reward, state.solver, problem, num_updates, key=key
        )
        average, mean = _follow(self.average, state.average, solved.policy)
        return AveragedState(mean, solved, average), report


@compiled
def _follow(average: AbstractAverage, state: Any, policy: AbstractPolicy) -> Any:
    """The running mean with one more policy: its state and itself."""
    state = average.update(state, policy)
    return state, average.mean(state, policy)
