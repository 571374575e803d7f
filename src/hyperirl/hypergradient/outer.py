"""The outer problem: how likely the demonstrations are under a policy."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, log_probs
from hyperirl.problem import Problem
from hyperirl.trajectories import Trajectories, discount_weights


def outer_loss(
    policy: AbstractPolicy, expert: Trajectories, problem: Problem
) -> Float[Array, ""]:
    """`L_outer = -(1/N) sum_tau sum_t gamma^t log pi(a_t | s_t)` over expert data."""
    weights = discount_weights(expert, problem.discount)
    return -jnp.sum(weights * log_probs(policy, expert)) / expert.num_episodes


def outer_gradient(
    policy: AbstractPolicy, expert: Trajectories, problem: Problem
) -> Float[Array, " dim"]:
    """`g = grad_theta L_outer`, flat: one reverse pass."""
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    loss = lambda flat: outer_loss(eqx.combine(unravel(flat), rest), expert, problem)
    return jax.grad(loss)(flat)


def policy_nll(
    policy: AbstractPolicy, expert: Trajectories
) -> Float[Array, " episodes"]:
    """`-sum_t log pi(a_t | s_t)` of each episode, undiscounted: what is reported."""
    return -jnp.sum(log_probs(policy, expert), axis=1)
