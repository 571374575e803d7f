"""What is known exactly about the soft problems of an environment, if anything is.

Nobody asks what kind of environment it has; they ask for its closed form, and sample if
there is none. Another kind of environment registers its own, and nothing else changes:

    @exact.closed_form.register(Mine)
    def _(environment):
        return MyClosedForm(environment)
"""

import abc
import functools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from hyperirl.environments import AbstractWorld
from hyperirl.policies import AbstractPolicy, Policy
from hyperirl.problem import Problem
from hyperirl.rewards import AbstractReward
from hyperirl.trajectories import Trajectories


class Standing(eqx.Module):
    """Where a policy stands in the inner problem, with nothing sampled."""

    inner_loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]  # Of the inner loss, in the policy's parameters.
    gap: Float[Array, ""]  # `L_inner - min L_inner`.
    entropy: Float[Array, ""]  # Mean over the discounted visits.
    kl: Float[Array, ""]  # From the policy before it, likewise.


class AbstractClosedForm(eqx.Module):
    """The exact solution of an environment's soft problems."""

    method: ClassVar[str]
    """What solves them, in words."""
    rewards: ClassVar[str]
    """Which rewards have a solution, in words."""
    policies: ClassVar[str]
    """Which policies can hold it, in words."""

    @abc.abstractmethod
    def true_reward(self) -> AbstractReward:
        """The environment's own reward, as one of those that have a solution."""

    @abc.abstractmethod
    def handles(self, reward: Callable) -> bool:
        """Whether the problem with this reward has a solution here."""

    @abc.abstractmethod
    def blank_policy(self) -> Policy:
        """A policy of the class that holds the solutions, before any."""

    @abc.abstractmethod
    def optimal_policy(self, reward: Callable, problem: Problem) -> Policy:
        """The soft-optimal policy, in the environment's precision."""

    @abc.abstractmethod
    def judge(
        self, policy: Policy, before: Policy, reward: Callable, problem: Problem
    ) -> Standing:
        """Where a policy stands; both policies are of the class of the solution."""

    @abc.abstractmethod
    def gap(
        self, policy: AbstractPolicy, reward: Callable, problem: Problem
    ) -> Float[Array, ""] | None:
        """`L_inner - min L_inner` of a policy of any class.

        None where the visits of such a policy are not known and must be sampled: the
        gap is `alpha E sum_t gamma^t KL(policy, optimal_policy)` over them.
        """

    @abc.abstractmethod
    def hypergradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        """`d L_outer(theta*(phi)) / d phi` in the reward's trained parameters."""

    @abc.abstractmethod
    def max_ent_gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        """`(1/alpha) (E_pi - E_expert) sum_t gamma^t grad_phi r`, `pi` soft-optimal.

        Both sums stop where the demonstrations are cut.
        """

    def check_reward(self, reward: Callable) -> None:
        """Raises unless the problem with this reward has a solution here."""
        if not self.handles(reward):
            given = getattr(reward, "__name__", type(reward).__name__)
            raise ValueError(
                f"The {self.method} is for {self.rewards}, got {given}; choose such a "
                "reward, or solve by `PPO` and learn with method=fisher."
            )

    def check_policy(self, policy: AbstractPolicy) -> None:
        """Raises unless a policy can hold the solution."""
        if jax.tree.structure(policy) != jax.tree.structure(self.blank_policy()):
            raise ValueError(
                f"The solution of the {self.method} needs the place of {self.policies}:"
                " no hidden layers, biases or normalizer, and as many observations and "
                "actions as there are here."
            )


@functools.singledispatch
def closed_form(environment: AbstractWorld) -> AbstractClosedForm | None:
    """The closed form of an environment; None where there is none."""
    return None


def require_closed_form(environment: AbstractWorld) -> AbstractClosedForm:
    """The closed form of an environment, and an error where there is none."""
    closed = closed_form(environment)
    if closed is None:
        raise ValueError(
            f"This {type(environment).__name__} has no closed form; solve it by `PPO` "
            "or `SAC`, and learn with method=fisher."
        )
    return closed
