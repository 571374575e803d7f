"""The hypergradient itself, where it can be computed: no trajectories, no noise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from hyperirl import exact
from hyperirl.environments import AbstractEnvironment
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
from hyperirl.trajectories import Trajectories


class Exact(AbstractEstimator):
    """Differentiates through the closed form of an environment's inner problem.

    The policy at hand is not looked at: `h` belongs to the soft-optimal one.
    """

    closed: exact.AbstractClosedForm

    def __init__(self, environment: AbstractEnvironment):
        self.closed = exact.require_closed_form(environment)

    def update(
        self,
        state: tuple[()],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, tuple[()]]:
        self.closed.check_reward(reward)
        h = self.closed.hypergradient(reward, expert, problem)
        cast = lambda leaf, like: leaf.astype(like.dtype)
        h = jax.tree.map(cast, h, partition(reward)[0])
        reference = ml_irl_gradient(reward, expert, agent, problem)
        noiseless = jnp.asarray(jnp.inf, jnp.float32)
        found = Diagnostics(norm(h), noiseless, cosine(h, reference), solve=None)
        return Estimate(h, found), state
