"""The two losses of a finite MDP, their curvature, and the hypergradient.

The policy's parameters `theta` are the logits, the reward's parameters `phi` the table.
Where a `horizon` is given, sums over time stop there: that is what an estimator sees
whose episodes are cut. The theory is about the infinite sum.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.environments import Tabular
from hyperirl.exact._float64 import float64
from hyperirl.exact.tabular.solution import soft_value_iteration
from hyperirl.exact.tabular.visits import occupancy
from hyperirl.problem import Problem


def outer_loss(
    logits: Float[Array, "states actions"], weights: Float[Array, "states actions"]
) -> Float[Array, ""]:
    """`L_outer = -sum_{s, a} w(s, a) log pi(a | s)`.

    Args:
        logits: Of the policy.
        weights: The expert's discounted visits: `occupancy` of a policy that is known,
            or `demo_weights` of demonstrations.
    """
    log_pi = jax.nn.log_softmax(float64(logits))
    return -jnp.sum(float64(weights) * log_pi)


def inner_loss(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    reward: Float[Array, "states actions"],
    problem: Problem,
    *,
    horizon: int | None = None,
) -> Float[Array, ""]:
    """`L_inner = E_pi sum_t gamma^t (alpha log pi(a_t | s_t) - r(s_t, a_t))`."""
    logits, reward, problem = float64((logits, reward, problem))
    visits = occupancy(mdp, logits, problem.discount, horizon=horizon)
    log_pi = jax.nn.log_softmax(logits)
    return jnp.sum(visits * (problem.temperature * log_pi - reward))


def optimality_gap(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    reward: Float[Array, "states actions"],
    problem: Problem,
) -> Float[Array, ""]:
    """`L_inner(pi) - min L_inner`, without cancellation.

    It is `alpha sum_s d_pi(s) KL(pi(. | s), pi*(. | s))`.
    """
    logits, problem = float64((logits, problem))
    visits = occupancy(mdp, logits, problem.discount)
    best = soft_value_iteration(mdp, reward, problem).logits
    divergence = jax.nn.log_softmax(logits) - best
    return problem.temperature * jnp.sum(visits * divergence)


def fisher(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    problem: Problem,
    *,
    horizon: int | None = None,
) -> Float[Array, "dim dim"]:
    """`F = E_pi sum_t gamma^t score score'`, in the order of `logits.reshape(-1)`.

    Block-diagonal: `d(s) (diag(p) - p p')` for every state, with `p = pi(. | s)`.
    """
    visits = occupancy(mdp, logits, problem.discount, horizon=horizon)
    pi = jax.nn.softmax(float64(logits))
    eye = jnp.eye(mdp.num_states)
    diagonal = jnp.diag(visits.reshape(-1))
    blocks = jnp.einsum("sa,sb,st->satb", visits, pi, eye)
    return diagonal - blocks.reshape(diagonal.shape)


def cross_derivative(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    problem: Problem,
    *,
    horizon: int | None = None,
) -> Float[Array, "dim dim"]:
    """`d^2 L_inner / d phi d theta`: a row for each entry of the reward table.

    `d L_inner / d r(s, a) = -w(s, a)`, so this is minus the Jacobian of `occupancy`,
    whatever the reward.
    """
    visits = lambda logits: occupancy(mdp, logits, problem.discount, horizon=horizon)
    jacobian = jax.jacobian(visits)(float64(logits))
    return -jacobian.reshape(logits.size, logits.size)


def implicit_hypergradient(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    problem: Problem,
    weights: Float[Array, "states actions"],
    *,
    damping: float | Float[Array, ""] = 0.0,
    horizon: int | None = None,
) -> Float[Array, "states actions"]:
    """`h = -C (alpha F + lambda I)^-1 grad_theta L_outer`.

    `C` is the cross derivative. At the soft-optimal logits and without damping `h` is
    the derivative of `L_outer(theta*(phi))`. Adding a constant to the logits of a state
    changes nothing, so `F` is singular; the inverse is the pseudo-inverse.
    """
    problem = float64(problem)
    gradient = jax.grad(outer_loss)(float64(logits), weights).reshape(-1)
    curvature = problem.temperature * fisher(mdp, logits, problem, horizon=horizon)
    curvature += jnp.asarray(damping, jnp.float64) * jnp.eye(logits.size)
    cross = cross_derivative(mdp, logits, problem, horizon=horizon)
    solved = jnp.linalg.pinv(curvature, hermitian=True) @ gradient
    return -(cross @ solved).reshape(logits.shape)


def hypergradient(
    mdp: Tabular,
    reward: Float[Array, "states actions"],
    problem: Problem,
    weights: Float[Array, "states actions"],
) -> Float[Array, "states actions"]:
    """`d L_outer(theta*(phi)) / d phi`, by autodiff through soft value iteration."""

    def loss(reward: Float[Array, "states actions"]) -> Float[Array, ""]:
        return outer_loss(soft_value_iteration(mdp, reward, problem).logits, weights)

    return jax.grad(loss)(float64(reward))


def ml_irl_gradient(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    problem: Problem,
    weights: Float[Array, "states actions"],
    *,
    horizon: int | None = None,
) -> Float[Array, "states actions"]:
    """`(1 / alpha) (w_pi - w_expert)`: agent's minus expert's discounted visits.

    Equals the hypergradient if the dynamics, from the same first states, explain the
    expert's visits.
    """
    problem = float64(problem)
    visits = occupancy(mdp, logits, problem.discount, horizon=horizon)
    return (visits - float64(weights)) / problem.temperature
