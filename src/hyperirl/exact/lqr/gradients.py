"""Fisher information and hypergradients of LQR.

The policy's parameters `theta` are those of `linear_gaussian`, in the order in which
`jax.flatten_util.ravel_pytree` lays them out; the reward's parameters `phi` are the two
roots of a `QuadraticReward`, and gradients with respect to them are one as well. The
expert is given by its `Moments`, of a policy or of demonstrations.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from hyperirl.environments import LQR
from hyperirl.exact._float64 import float64
from hyperirl.exact.lqr.moments import (
    Moments,
    expected_return,
    gain_and_scale,
    inner_loss,
    moments,
    negative_log_likelihood,
)
from hyperirl.exact.lqr.riccati import exact_policy
from hyperirl.networks import partition
from hyperirl.policies import Policy
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward


def parameters(
    policy: Policy,
) -> tuple[Float[Array, " dim"], Callable[[Float[Array, " dim"]], Policy]]:
    """`theta` in `float64`, and the function that makes a policy of it."""
    trained, rest = partition(float64(policy))
    theta, unravel = ravel_pytree(trained)
    return theta, lambda theta: eqx.combine(unravel(theta), rest)


def fisher(
    lqr: LQR, policy: Policy, problem: Problem, *, horizon: int | None = None
) -> Float[Array, "dim dim"]:
    """`F = E_pi sum_t gamma^t score score'`.

    The mean is `weight @ s`, so its block is the Kronecker product of the precision of
    the action and the moments of the state. The scale is the same in every state.
    """
    own = moments(lqr, policy, problem.discount, horizon=horizon)
    _, C = gain_and_scale(policy)
    size = C.shape[0]
    outputs = jnp.concatenate([jnp.zeros(size), float64(policy.free)])
    factor = policy.head.fisher_factor(outputs)
    per_step = factor @ factor.T
    mean, scale = per_step[:size, :size], per_step[size:, size:]
    return block_diag(jnp.kron(mean, own.states), own.weight * scale)


def hypergradient(
    lqr: LQR, reward: QuadraticReward, problem: Problem, expert: Moments
) -> QuadraticReward:
    """`d L_outer(theta*(phi)) / d phi`, by autodiff through the Riccati equation.

    With the moments of demonstrations, of the empirical likelihood.
    """

    def loss(reward: QuadraticReward) -> Float[Array, ""]:
        return negative_log_likelihood(exact_policy(lqr, reward, problem), expert)

    return jax.grad(loss)(float64(reward))


def implicit_hypergradient(
    lqr: LQR,
    policy: Policy,
    reward: QuadraticReward,
    problem: Problem,
    expert: Moments,
    *,
    damping: float | Float[Array, ""] = 0.0,
    horizon: int | None = None,
) -> QuadraticReward:
    """`h = -C (alpha F + lambda I)^-1 grad_theta L_outer`.

    `C = d^2 L_inner / d phi d theta` is never formed: `C v` is the gradient, with
    respect to the reward, of the slope of `L_inner` in direction `v`. At the
    soft-optimal policy and without damping `h` is the derivative of
    `L_outer(theta*(phi))`. With a `horizon`, agent's sums stop there.
    """
    reward, problem = float64((reward, problem))
    theta, make = parameters(policy)
    loss = lambda theta: negative_log_likelihood(make(theta), expert)
    curvature = problem.temperature * fisher(lqr, policy, problem, horizon=horizon)
    curvature += jnp.asarray(damping, jnp.float64) * jnp.eye(theta.size)
    v = jnp.linalg.solve(curvature, jax.grad(loss)(theta))

    def slope(reward: QuadraticReward) -> Float[Array, ""]:
        inner = lambda theta: inner_loss(
            lqr, make(theta), reward, problem, horizon=horizon
        )
        return jax.jvp(inner, (theta,), (v,))[1]

    return jax.tree.map(jnp.negative, jax.grad(slope)(reward))


def ml_irl_gradient(
    lqr: LQR,
    policy: Policy,
    reward: QuadraticReward,
    problem: Problem,
    expert: Moments,
    *,
    horizon: int | None = None,
) -> QuadraticReward:
    """`(1 / alpha) (E_pi - E_expert) sum_t gamma^t grad_phi r(s_t, a_t)`.

    Equals the hypergradient if the dynamics, from the same first states, explain the
    expert's moments.
    """
    reward, problem = float64((reward, problem))
    own = moments(lqr, policy, problem.discount, horizon=horizon)

    def contrast(reward: QuadraticReward) -> Float[Array, ""]:
        difference = expected_return(reward, own) - expected_return(reward, expert)
        return difference / problem.temperature

    return jax.grad(contrast)(reward)
