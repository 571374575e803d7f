"""Closed forms under the common interface: one update, and the answer is there."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.inner.solver import AbstractInnerSolver, Reward, SolveReport
from hyperirl.policies import AbstractPolicy, Policy
from hyperirl.problem import Problem


class ExactState(eqx.Module):
    """Nothing but the policy."""

    policy: Policy


class Exact(AbstractInnerSolver):
    """The soft-optimal policy of an environment that has a closed form."""

    @property
    def steps_per_update(self) -> int:
        return 0

    def required_policy(self, environment: AbstractWorld) -> Policy:
        """One that can hold the solution."""
        return exact.require_closed_form(environment).blank_policy()

    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> ExactState:
        del key
        exact.require_closed_form(environment).check_policy(policy)
        assert isinstance(policy, Policy)
        return ExactState(policy)

    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: ExactState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[ExactState, SolveReport]:
        del key
        closed = exact.require_closed_form(environment)
        closed.check_reward(reward)
        best, old = closed.optimal_policy(reward, problem), state.policy
        moved = num_updates > 0
        choose = lambda new, old: jnp.where(moved, new.astype(old.dtype), old)
        policy = jax.tree.map(choose, best, old)
        return ExactState(policy), _report(closed.judge(policy, old, reward, problem))


def _report(standing: exact.Standing) -> SolveReport:
    """Exact numbers, without errors and steps."""
    standing = jax.tree.map(lambda x: x.astype(jnp.float32), standing)
    zero = jnp.zeros((), jnp.float32)
    return SolveReport(
        gradient_norm=standing.gradient_norm,
        gradient_norm_error=zero,
        gradient_norm_squared=standing.gradient_norm**2,
        kl=standing.kl,
        entropy=standing.entropy,
        soft_return=-standing.inner_loss,
        gap=standing.gap,
        gap_error=zero,
        steps=jnp.zeros((), jnp.int32),
    )


def true_reward(environment: AbstractWorld) -> Reward:
    """The environment's own reward, in the form that exact answers know."""
    if not getattr(environment, "has_reward", True):
        raise ValueError(
            f"This {type(environment).__name__} has no reward of its own; give the one "
            "to maximize as `reward`."
        )
    closed = exact.closed_form(environment)
    world: Any = environment  # It says that it has one.
    return world.reward if closed is None else closed.true_reward()
