"""The hypergradient itself, where it can be computed: no trajectories, no noise."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, Tabular
from hyperirl.hypergradient.estimate import (
    AbstractEstimator,
    Diagnostics,
    Estimate,
    cosine,
    ml_irl_gradient,
    norm,
)
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward
from hyperirl.trajectories import Trajectories


class Exact(AbstractEstimator):
    """Differentiates through the exact inner solution of a finite MDP or of LQR.

    The policy at hand is not looked at: `h` belongs to the soft-optimal one. On a
    finite MDP any reward will do; on LQR it must be quadratic.
    """

    environment: Tabular | LQR

    def __init__(self, environment: AbstractEnvironment):
        if not isinstance(environment, Tabular | LQR):
            raise ValueError(
                "Exact hypergradients exist for finite MDPs and for LQR, not for "
                f"{type(environment).__name__}; use method=fisher."
            )
        self.environment = environment

    def __call__(
        self,
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> Estimate:
        params, rest = partition(reward)
        of = _tabular if isinstance(self.environment, Tabular) else _lqr
        h = of(self.environment, params, rest, expert, problem)
        h = jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), h, params)
        reference = ml_irl_gradient(reward, expert, agent, problem)
        noiseless = jnp.asarray(jnp.inf, jnp.float32)
        return Estimate(
            h, Diagnostics(norm(h), noiseless, cosine(h, reference), solve=None)
        )


def _tabular(mdp: Any, params: Any, rest: Any, expert: Trajectories, problem: Problem):
    table = lambda params: exact.tabular.reward_table(mdp, eqx.combine(params, rest))
    values, pull_back = jax.vjp(table, params)
    weights = exact.tabular.demo_weights(expert, problem.discount, values.shape[1])
    h = exact.tabular.hypergradient(mdp, values, problem, weights)
    return pull_back(h.astype(values.dtype))[0]


def _lqr(lqr: Any, params: Any, rest: Any, expert: Trajectories, problem: Problem):
    reward = eqx.combine(params, rest)
    if not isinstance(reward, QuadraticReward):
        raise ValueError(
            "The exact hypergradient of LQR needs a quadratic reward, got "
            f"{type(reward).__name__}; use reward=quadratic or method=fisher."
        )
    moments = exact.lqr.demo_moments(expert, problem.discount)
    return exact.lqr.hypergradient(lqr, reward, problem, moments)
