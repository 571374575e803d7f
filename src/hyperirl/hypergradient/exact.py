"""Gradients that are computed and not estimated: no trajectories, no noise."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from hyperirl import exact
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


class AbstractExact(AbstractEstimator):
    """Asks an environment's closed form; the policy at hand is not looked at."""

    closed: exact.AbstractClosedForm = eqx.field(converter=exact.require_closed_form)

    @abc.abstractmethod
    def gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        """That of the reward's parameters, in the precision of the oracle."""

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
        h = self.gradient(reward, expert, problem)
        cast = lambda leaf, like: leaf.astype(like.dtype)
        h = jax.tree.map(cast, h, partition(reward)[0])
        reference = ml_irl_gradient(reward, expert, agent, problem)
        noiseless = jnp.asarray(jnp.inf, jnp.float32)
        found = Diagnostics(norm(h), noiseless, cosine(h, reference), solve=None)
        return Estimate(h, found), state


class Exact(AbstractExact):
    """The hypergradient itself, through the closed form of the inner problem."""

    def gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        return self.closed.hypergradient(reward, expert, problem)


class MaxEnt(AbstractExact):
    """Maximum causal entropy IRL: `h = (1/alpha) (E_pi - E_expert) sum gamma^t grad r`.

    With the exact soft-optimal policy `pi` of the reward (Ziebart et al., 2010; for
    infinite discounted horizons Bloem and Bambos, 2014). The expectations are cut where
    the demonstrations are. It is the hypergradient if the dynamics explain the visits
    of the demonstrations, and differs by

        h - h_exact = (1/alpha) sum_s [gap_expert(s) - gap_agent(s)] V(s),

    where `V(s)` are the expected discounted reward gradients from `s` on, and `gap(s)`
    is what the visits lack: `initial + gamma E[next state] - visits`.
    """

    def gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        return self.closed.max_ent_gradient(reward, expert, problem)
