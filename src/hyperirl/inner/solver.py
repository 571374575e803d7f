"""What every inner solver offers, and what it says about its answer."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.programs import is_traced

Reward = Callable[[Array, Array], Array]  # r(observation, action); a pytree.


def hyperparameter(default: float):
    """A field for a number that may change without anything being compiled again."""
    as_array = lambda value: jnp.asarray(value, jnp.float32)
    return eqx.field(converter=as_array, default_factory=lambda: as_array(default))


class SolveReport(eqx.Module):
    """How well the inner problem is solved, at the policy that is returned.

    Quantities are those of `L_inner = E sum_t gamma^t (alpha log pi - r)`, estimated
    from experience of the returned policy; `docs/inner.md` says how to read them. What
    a solver cannot know is NaN.
    """

    gradient_norm: Float[Array, ""]  # Of the estimated gradient of L_inner...
    gradient_norm_error: Float[Array, ""]  # ...and its standard error.
    gradient_norm_squared: Float[Array, ""]  # Without the bias that noise adds.
    kl: Float[Array, ""]  # Mean KL(after, before) of the last update.
    entropy: Float[Array, ""]  # Mean over the states visited.
    soft_return: Float[Array, ""]  # -L_inner: discounted, with its entropy.
    gap: Float[Array, ""]  # L_inner - min L_inner: exact, or estimated...
    gap_error: Float[Array, ""]  # ...with this standard error (0: exact).
    steps: Int[Array, ""]  # Environment steps of this solve.

    @classmethod
    def unknown(cls) -> "SolveReport":
        """The report before anything is solved."""
        names = [field.name for field in dataclasses.fields(cls)]
        numbers = dict.fromkeys(names, jnp.full((), jnp.nan, jnp.float32))
        return cls(**numbers | {"steps": jnp.zeros((), jnp.int32)})


class AbstractInnerSolver(eqx.Module):
    """Minimizes `L_inner` over the parameters of a policy, for a given reward.

    Fields that are numbers of the algorithm are arrays, so that changing them compiles
    nothing; fields that are sizes are static.
    """

    @property
    @abc.abstractmethod
    def steps_per_update(self) -> int:
        """Environment steps taken for one update."""

    def required_policy(self, environment: AbstractWorld) -> AbstractPolicy | None:
        """A policy of the only class that will do; None if any differentiable one."""
        return None

    def at_pace(self, pace: Float[Array, ""]) -> "AbstractInnerSolver":
        """For a problem that goes this share of the way to its end in one step."""
        return self

    @property
    def in_parts(self) -> bool:
        """Whether `run` compiles its own parts, each of them once, and repeats them.

        For updates of tens of milliseconds: a call from Python costs up to half of one.
        """
        return False

    @abc.abstractmethod
    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> Any:
        """A state to start from: a pytree whose field `policy` is `policy`."""

    @abc.abstractmethod
    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: Any,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Any, SolveReport]:
        """What `solve` compiles, whole or in parts."""

    def solve(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: Any,
        problem: Problem,
        num_updates: int | Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Any, SolveReport]:
        """Improves `state.policy` by `num_updates` updates.

        Compiled once for each combination of sizes: other reward parameters, another
        problem, learning rate, number of updates or key run the same programs. In a
        world that is stepped by the host, the parts between its steps are compiled.
        """
        num_updates = jnp.asarray(num_updates, jnp.int32)
        given = self, environment, reward, state, problem, num_updates, key
        if environment.is_stepped or (self.in_parts and not is_traced(given)):
            return self.run(environment, reward, state, problem, num_updates, key=key)
        return _solve(*given)


@eqx.filter_jit
def _solve(solver, environment, reward, state, problem, num_updates, key):
    return solver.run(environment, reward, state, problem, num_updates, key=key)


def repeat(num_times: Int[Array, ""], body: Callable, state: Any) -> Any:
    """`state = body(i, state)` for `i < num_times`, as part of a compiled program.

    Unlike `jax.lax.fori_loop`, the state may hold things that are not arrays; and
    outside of a program it is a loop in Python.
    """
    if not is_traced((num_times, state)):
        for i in range(int(num_times)):
            state = body(jnp.asarray(i, jnp.int32), state)
        return state
    arrays, rest = eqx.partition(state, eqx.is_array)

    def step(i, arrays):
        new = body(i, eqx.combine(arrays, rest))
        return eqx.filter(new, eqx.is_array)

    start = jnp.zeros((), jnp.int32)
    return eqx.combine(jax.lax.fori_loop(start, num_times, step, arrays), rest)
