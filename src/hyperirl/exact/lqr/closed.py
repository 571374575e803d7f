"""LQR has a closed form for quadratic rewards, if it is linear indeed."""

import math
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from hyperirl.environments import LQR
from hyperirl.exact.closed import AbstractClosedForm, Standing, closed_form
from hyperirl.exact.lqr.gradients import hypergradient, ml_irl_gradient
from hyperirl.exact.lqr.moments import (
    demo_moments,
    divergence,
    inner_loss,
    moments,
    optimality_gap,
)
from hyperirl.exact.lqr.riccati import (
    exact_policy,
    soft_optimal_policy,
    true_reward,
)
from hyperirl.policies import AbstractPolicy, Policy, linear_gaussian
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward
from hyperirl.trajectories import Trajectories


class LQRClosedForm(AbstractClosedForm):
    """The soft Riccati equation; the policies are linear with a full covariance."""

    lqr: LQR

    method: ClassVar[str] = "soft Riccati equation"
    rewards: ClassVar[str] = "quadratic rewards"
    policies: ClassVar[str] = "a linear-Gaussian policy"

    def true_reward(self) -> QuadraticReward:
        return true_reward(self.lqr)

    def handles(self, reward: Callable) -> bool:
        return isinstance(reward, QuadraticReward)

    def blank_policy(self) -> Policy:
        obs, act = self.lqr.B.shape
        gain = jnp.zeros((act, obs), jnp.float32)
        return linear_gaussian(gain, jnp.eye(act, dtype=jnp.float32))

    def optimal_policy(self, reward: Callable, problem: Problem) -> Policy:
        return soft_optimal_policy(self.lqr, _quadratic(reward), problem)

    def judge(
        self, policy: Policy, before: Policy, reward: Callable, problem: Problem
    ) -> Standing:
        lqr, reward = self.lqr, _quadratic(reward)
        loss = lambda policy: inner_loss(lqr, policy, reward, problem)
        value, gradient = eqx.filter_value_and_grad(loss)(policy)
        squares = [
            jnp.sum(g.astype(jnp.float64) ** 2) for g in jax.tree.leaves(gradient)
        ]
        own = moments(lqr, policy, problem.discount)
        anywhere = jnp.zeros(lqr.observation_size, policy.free.dtype)
        return Standing(
            inner_loss=value,
            gradient_norm=jnp.sqrt(sum(squares)),
            gap=optimality_gap(lqr, policy, reward, problem),
            entropy=policy.entropy(anywhere),  # The same in every state.
            kl=divergence(policy, before, own) / own.weight,
        )

    def gap(self, policy: AbstractPolicy, reward: Callable, problem: Problem) -> None:
        """A network's visits are not known."""
        return None

    def hypergradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree:
        seen = demo_moments(expert, problem.discount)
        return hypergradient(self.lqr, _quadratic(reward), problem, seen)

    def max_ent_gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree:
        lqr, quadratic = self.lqr, _quadratic(reward)
        policy = exact_policy(lqr, quadratic, problem)
        seen = demo_moments(expert, problem.discount)
        cut = expert.num_steps
        return ml_irl_gradient(lqr, policy, quadratic, problem, seen, horizon=cut)


def _quadratic(reward: Callable) -> QuadraticReward:
    assert isinstance(reward, QuadraticReward)  # As `check_reward` made sure.
    return reward


@closed_form.register(LQR)
def _closed_form(environment: LQR) -> LQRClosedForm | None:
    """None where actions are clipped or states end episodes: that is not linear."""
    linear = math.isinf(environment.max_action) and math.isinf(environment.max_norm)
    return LQRClosedForm(environment) if linear else None
