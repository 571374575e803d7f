"""Discounted second moments: all that a quadratic problem knows about behavior.

Rewards and log-probabilities of linear-Gaussian policies are quadratic in `z = (s, a)`,
so their expected sums over time need `E sum_t gamma^t z_t z_t'` and nothing else. These
moments are to LQR what the table of visits is to a finite MDP: they come from a policy
in closed form, or from demonstrations.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag, solve_triangular
from jaxtyping import Array, Float

from hyperirl.environments import LQR
from hyperirl.exact._float64 import float64
from hyperirl.exact.lqr.riccati import exact_policy, lyapunov
from hyperirl.policies import Gaussian, GaussianHead, Policy
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward
from hyperirl.trajectories import Trajectories, discount_weights


class Moments(eqx.Module):
    """Sums over time, in expectation over episodes."""

    weight: Float[Array, ""]  # sum_t gamma^t
    states: Float[Array, "obs obs"]  # sum_t gamma^t s s'
    mixed: Float[Array, "act obs"]  # sum_t gamma^t a s'
    actions: Float[Array, "act act"]  # sum_t gamma^t a a'


def gain_and_scale(
    policy: Policy,
) -> tuple[Float[Array, "act obs"], Float[Array, "act act"]]:
    """`K` and `C` of the policy `a ~ N(-K s, C C')`, in `float64`.

    An error for any other kind of policy: the closed forms are about these.
    """
    layers, head = policy.network.layers, policy.head
    linear = len(layers) == 1 and layers[0].bias is None and policy.normalizer is None
    if not linear or not isinstance(head, GaussianHead):
        raise ValueError(
            "Exact answers need a linear-Gaussian policy: no hidden layers, biases or "
            "normalizer. Make one with `hyperirl.policies.linear_gaussian`."
        )
    if head.covariance == "state" or head.bounds is not None:
        raise ValueError(
            "Exact answers need a Gaussian with one covariance and unbounded actions, "
            f"got covariance={head.covariance!r} and bounds={head.bounds}."
        )
    return -float64(layers[0].weight), head.scale_tril(float64(policy.free))


def moments(
    lqr: LQR,
    policy: Policy,
    discount: float | Float[Array, ""],
    *,
    horizon: int | None = None,
) -> Moments:
    """The moments of a linear-Gaussian policy, up to `horizon` if there is one.

    With `M = A - B K` and action covariance `S`, the state covariance `X_t` moves as
    `X_{t+1} = M X_t M' + B S B' + W`. The infinite sum solves the Lyapunov equation
    `X = X_0 + gamma M X M' + gamma / (1 - gamma) (B S B' + W)`; it is NaN if the policy
    does not keep the discounted sum finite.
    """
    lqr, discount = float64(lqr), jnp.asarray(discount, jnp.float64)
    K, C = gain_and_scale(policy)
    M = lqr.A - lqr.B @ K
    spread = C @ C.T
    noise = lqr.B @ spread @ lqr.B.T + lqr.noise_root @ lqr.noise_root.T
    initial = lqr.initial_root @ lqr.initial_root.T
    if horizon is None:
        weight = 1 / (1 - discount)
        X = lyapunov(jnp.sqrt(discount) * M, initial + discount * weight * noise)
    else:
        step = lambda X, _: (M @ X @ M.T + noise, X)
        _, steps = jax.lax.scan(step, initial, length=horizon)
        weights = discount ** jnp.arange(horizon, dtype=jnp.float64)
        weight, X = jnp.sum(weights), jnp.tensordot(weights, steps, axes=1)
    return Moments(weight, X, -K @ X, K @ X @ K.T + weight * spread)


def demo_moments(demos: Trajectories, discount: float | Float[Array, ""]) -> Moments:
    """The moments of demonstrations: `(1/N) sum_tau sum_t gamma^t z_t z_t'`."""
    weights = discount_weights(float64(demos), jnp.asarray(discount, jnp.float64))
    weights = weights / demos.num_episodes
    # `where` and not a product: padding may hold anything, NaN included.
    alive = lambda x: jnp.where(demos.mask[:, :, None], float64(x), 0.0)
    states, actions = alive(demos.observations[:, :-1]), alive(demos.actions)
    second = lambda x, y: jnp.einsum("nt,nti,ntj->ij", weights, x, y)
    return Moments(
        weight=jnp.sum(weights),
        states=second(states, states),
        mixed=second(actions, states),
        actions=second(actions, actions),
    )


def negative_log_likelihood(policy: Policy, moments: Moments) -> Float[Array, ""]:
    """`-E sum_t gamma^t log pi(a_t | s_t)` of the behavior that has these moments.

    With discounted moments of the expert this is `L_outer`; with undiscounted ones over
    the horizon it is the PolicyNLL, and its floor if `policy` is the expert.
    """
    K, C = gain_and_scale(policy)
    # The second moment of the residual `a + K s`.
    mixed = moments.mixed @ K.T
    residual = moments.actions + mixed + mixed.T + K @ moments.states @ K.T
    whiten = lambda x: solve_triangular(C, x, lower=True)
    distance = jnp.trace(whiten(whiten(residual).T))
    log_det = jnp.sum(jnp.log(jnp.diagonal(C)))
    constant = 0.5 * C.shape[0] * math.log(2 * math.pi)
    return 0.5 * distance + moments.weight * (log_det + constant)


def expected_return(reward: QuadraticReward, moments: Moments) -> Float[Array, ""]:
    """`E sum_t gamma^t r(s_t, a_t)` of the behavior that has these moments."""
    reward = float64(reward)
    costs = block_diag(reward.state_cost, reward.action_cost)
    return -jnp.sum(costs * block_diag(moments.states, moments.actions))


def inner_loss(
    lqr: LQR,
    policy: Policy,
    reward: QuadraticReward,
    problem: Problem,
    *,
    horizon: int | None = None,
) -> Float[Array, ""]:
    """`L_inner = E_pi sum_t gamma^t (alpha log pi(a_t | s_t) - r(s_t, a_t))`."""
    problem = float64(problem)
    own = moments(lqr, policy, problem.discount, horizon=horizon)
    entropy = negative_log_likelihood(policy, own)
    return -problem.temperature * entropy - expected_return(reward, own)


def optimality_gap(
    lqr: LQR, policy: Policy, reward: QuadraticReward, problem: Problem
) -> Float[Array, ""]:
    """`L_inner(pi) - min L_inner`, without cancellation.

    It is `alpha E_pi sum_t gamma^t KL(pi(. | s_t), pi*(. | s_t))`.
    """
    problem = float64(problem)
    own = moments(lqr, policy, problem.discount)
    best = exact_policy(lqr, reward, problem)
    return problem.temperature * divergence(policy, best, own)


def divergence(policy: Policy, other: Policy, moments: Moments) -> Float[Array, ""]:
    """`E sum_t gamma^t KL(policy, other)` over the states that have these moments."""
    K, C = gain_and_scale(policy)
    other_K, other_C = gain_and_scale(other)
    zero = jnp.zeros(C.shape[0])
    spread = Gaussian(zero, C).kl(Gaussian(zero, other_C))
    apart = solve_triangular(other_C, K - other_K, lower=True)
    return moments.weight * spread + 0.5 * jnp.trace(apart @ moments.states @ apart.T)
