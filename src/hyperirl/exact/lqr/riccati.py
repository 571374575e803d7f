"""The soft Riccati equation: the inner problem of LQR, solved to rounding.

With reward `-(s' Q s + a' R a)`, temperature `alpha` and discount `gamma`,

    P = Q + gamma A' P A - gamma^2 A' P B H^-1 B' P A,    H = R + gamma B' P B
    K = gamma H^-1 B' P A
    pi(a | s) = N(-K s, (alpha / 2) H^-1)
    v(s) = -s' P s + c
    (1 - gamma) c = (alpha / 2) (m log(pi alpha) - log det H) - gamma tr(P W)

where `m` is the number of action components and `W` the covariance of the noise. The
temperature changes the spread of the actions and the constant, never `P` and `K`.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.environments import LQR
from hyperirl.exact._float64 import float64
from hyperirl.policies import Policy, linear_gaussian
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward

_TOLERANCE = 1e-9  # Two more Newton steps follow, each squaring the error.
_MAX_STEPS = 60  # Every step doubles the horizon.


class SoftRiccati(eqx.Module):
    """The policy `a ~ N(-gain s, covariance)` and its value `-s' P s + constant`."""

    P: Float[Array, "obs obs"]
    gain: Float[Array, "act obs"]
    covariance: Float[Array, "act act"]
    constant: Float[Array, ""]

    def value(self, observation: Float[Array, " obs"]) -> Float[Array, ""]:
        """The soft value of a state."""
        return self.constant - observation @ self.P @ observation


def lyapunov(
    M: Float[Array, "obs obs"], C: Float[Array, "obs obs"]
) -> Float[Array, "obs obs"]:
    """`sum_t M^t C M'^t`: the solution of `X = M X M' + C`, NaN if the sum diverges.

    It converges just if `X` for `C = I` is positive definite, and then `X >= I`.
    """
    eye = jnp.eye(M.shape[0])
    system = jnp.eye(M.size) - jnp.kron(M, M)
    sides = jnp.stack([C.reshape(-1), eye.reshape(-1)], axis=1)
    X, test = jnp.linalg.solve(system, sides).T.reshape(2, *M.shape)
    stable = jnp.linalg.eigvalsh(jax.lax.stop_gradient(test))[0] > 0.5
    return jnp.where(stable, (X + X.T) / 2, jnp.nan)


def _gain(A: Array, B: Array, R: Array, P: Array) -> Float[Array, "act obs"]:
    return jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)


def _doubling(A: Array, G: Array, H: Array) -> Float[Array, "obs obs"]:
    """The undiscounted `P`, from `G = B R^-1 B'` and `H = Q`, by structured doubling.

    After `k` steps `H` is the cost matrix of a problem that lasts `2^k` steps.
    """
    eye = jnp.eye(A.shape[0])

    def unfinished(carry) -> Array:
        step, _, _, old, new = carry
        change = jnp.max(jnp.abs(new - old))
        return (step < _MAX_STEPS) & (change > _TOLERANCE * jnp.max(jnp.abs(new)))

    def advance(carry):
        step, A, G, _, H = carry
        left = jnp.linalg.solve(eye + G @ H, jnp.concatenate([A, G], axis=1))
        A_part, G_part = jnp.split(left, 2, axis=1)
        return step + 1, A @ A_part, G + A @ G_part @ A.T, H, H + A.T @ H @ A_part

    start = (0, A, G, jnp.zeros_like(H), H)
    return jax.lax.while_loop(unfinished, advance, start)[-1]


def riccati(
    A: Float[Array, "obs obs"],
    B: Float[Array, "obs act"],
    Q: Float[Array, "obs obs"],
    R: Float[Array, "act act"],
    discount: Float[Array, ""],
) -> Float[Array, "obs obs"]:
    """The stabilizing solution `P` of the discounted Riccati equation.

    Found by structured doubling, then polished by two steps of policy iteration (which
    is Newton's method on `P`). Only these are differentiated. Since the derivative of a
    Newton step with respect to its start vanishes at the solution, that is exact for
    derivatives with respect to every argument up to the third.
    """
    A, B, Q, R, discount = float64((A, B, Q, R, discount))
    A, B = jnp.sqrt(discount) * A, jnp.sqrt(discount) * B

    def newton(P: Float[Array, "obs obs"]) -> Float[Array, "obs obs"]:
        K = _gain(A, B, R, P)
        return lyapunov((A - B @ K).T, Q + K.T @ R @ K)

    G = B @ jnp.linalg.solve(R, B.T)
    P = jax.lax.stop_gradient(_doubling(*jax.lax.stop_gradient((A, G, Q))))
    return newton(newton(P))


def soft_riccati(lqr: LQR, reward: QuadraticReward, problem: Problem) -> SoftRiccati:
    """The soft-optimal policy and value of the infinite discounted problem."""
    lqr, reward, problem = float64((lqr, reward, problem))
    R, alpha, gamma = reward.action_cost, problem.temperature, problem.discount
    P = riccati(lqr.A, lqr.B, reward.state_cost, R, gamma)
    H = R + gamma * lqr.B.T @ P @ lqr.B
    entropy = R.shape[0] * jnp.log(math.pi * alpha) - jnp.linalg.slogdet(H)[1]
    noise = jnp.trace(lqr.noise_root.T @ P @ lqr.noise_root)
    return SoftRiccati(
        P=P,
        gain=gamma * jnp.linalg.solve(H, lqr.B.T @ P @ lqr.A),
        covariance=alpha / 2 * jnp.linalg.inv(H),
        constant=(alpha / 2 * entropy - gamma * noise) / (1 - gamma),
    )


def soft_optimal_policy(lqr: LQR, reward: QuadraticReward, problem: Problem) -> Policy:
    """The soft-optimal linear-Gaussian policy, in the environment's precision.

    Computed in `float64`. The expert is `soft_optimal_policy(lqr, true_reward(lqr),
    problem)`.
    """
    policy = exact_policy(lqr, reward, problem)
    cast = lambda leaf: leaf.astype(lqr.A.dtype) if eqx.is_array(leaf) else leaf
    return jax.tree.map(cast, policy)


def exact_policy(lqr: LQR, reward: QuadraticReward, problem: Problem) -> Policy:
    """The soft-optimal policy in `float64`, to differentiate through."""
    solution = soft_riccati(lqr, reward, problem)
    return linear_gaussian(solution.gain, jnp.linalg.cholesky(solution.covariance))


def true_reward(lqr: LQR) -> QuadraticReward:
    """The environment's own reward; `Q` and `R` may be singular."""

    def root(cost: Float[Array, "n n"]) -> Float[Array, "n n"]:
        values, vectors = jnp.linalg.eigh(float64(cost))
        roots = vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]
        return roots.astype(cost.dtype)

    return QuadraticReward(root(lqr.Q), root(lqr.R))
