"""Challengers: policies that start afresh during learning, and may find a better way.

The policy in the loop has followed the reward from its beginning, and sits in one
optimum of the inner problem. Another one may be better: on a task without an end, lying
down. So every few steps a challenger starts with new weights, and trains beside the
policy in the loop, in episodes that start where those of the agent do: at the start of
the task, or of a segment. While its soft return is higher, beyond the
noise of both, it is what the reward asks for, and the reward learns to prefer the
expert to it:

    h = (1/alpha) (E_challenger - E_expert) sum_t gamma^t grad r

is the hypergradient at a soft-optimal policy (Zeng et al., 2022). The true reward has
no part in it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments import AbstractWorld
from hyperirl.hypergradient import ml_irl_gradient
from hyperirl.inner import AbstractInnerSolver, Reward
from hyperirl.policies import AbstractPolicy, log_probs
from hyperirl.problem import Problem
from hyperirl.programs import compiled
from hyperirl.rewards import rewards_of
from hyperirl.trajectories import Trajectories, returns


class Challenge(eqx.Module):
    """How challengers train."""

    environment: AbstractWorld  # Where agents act: with the starts of the data.
    solver: AbstractInnerSolver
    updates: Int[Array, ""]  # For each outer step.
    every: int = eqx.field(static=True)  # Outer steps, until a new one starts.

    def start(self, policy: AbstractPolicy, *, key: PRNGKeyArray) -> Any:
        """A new challenger: a state of the solver."""
        return self.solver.init(self.environment, policy, key=key)

    def train(
        self, state: Any, reward: Reward, problem: Problem, *, key: PRNGKeyArray
    ) -> Any:
        """The challenger after the updates of one outer step."""
        solved, _ = self.solver.solve(
            self.environment, reward, state, problem, self.updates, key=key
        )
        return solved


class Challenger(eqx.Module):
    """One that has trained, and what it does."""

    inner: Any  # A state of the solver.
    trajectories: Trajectories


class Duel(eqx.Module):
    """How a challenger did against the policy in the loop."""

    gain: Float[Array, ""]
    """Its soft return above the other's."""
    error: Float[Array, ""]
    """The standard error of that."""

    @property
    def won(self) -> Bool[Array, ""]:
        """Whether it is better, beyond noise."""
        return self.gain > 2 * self.error


@compiled
def duel(
    reward: Reward,
    challenger: tuple[AbstractPolicy, Trajectories],
    holder: tuple[AbstractPolicy, Trajectories],
    problem: Problem,
) -> Duel:
    """Compares the soft returns of two policies, each on its own trajectories."""
    first, second = (
        soft_returns(reward, *side, problem) for side in (challenger, holder)
    )
    error = lambda draws: jnp.var(draws, ddof=1) / draws.size
    gain = jnp.mean(first) - jnp.mean(second)
    return Duel(gain, jnp.sqrt(error(first) + error(second)))


def soft_returns(
    reward: Reward,
    policy: AbstractPolicy,
    trajectories: Trajectories,
    problem: Problem,
) -> Float[Array, " episodes"]:
    """`sum_t gamma^t (r - alpha log pi)` of each trajectory."""
    rewards = rewards_of(reward, trajectories).astype(jnp.float32)
    soft = rewards - problem.temperature * log_probs(policy, trajectories)
    return returns(trajectories, soft, problem.discount)


def answer_to(
    found: Duel,
    h: PyTree[Array],
    reward: Reward,
    expert: Trajectories,
    challenger: Challenger,
    problem: Problem,
) -> PyTree[Array]:
    """`h`, or the gradient against the challenger where that one has won."""
    against = ml_irl_gradient(reward, expert, challenger.trajectories, problem)
    pick = lambda new, old: jnp.where(found.won, new.astype(old.dtype), old)
    return jax.tree.map(pick, against, h)
