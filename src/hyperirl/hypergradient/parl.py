"""PARL's implicit gradient: the Hessian of the inner problem itself.

Chakraborty et al. (2024) differentiate an upper loss through the inner optimum by the
implicit function theorem, `h = -C H^-1 g`, with `H` the Hessian of the inner loss and
`C` its mixed derivative, both estimated with scores from the agent's episodes. Where
the upper loss is an expectation over the policy's own episodes, `g` also has a score
term, `E_pi [U(tau) sum_t grad log pi(a_t | s_t)]`. Here the upper data are the expert's
and do not move with the policy: that term is zero, and what remains is the sampled
Hessian in place of `alpha F`.

The two are the same at the inner optimum of a class that holds the soft-optimal policy.
Elsewhere `H` has terms with the advantages, and may be indefinite. So it is inverted in
the sense of least squares: `v` minimizes `|H v - g|^2 + damping^2 |v|^2`. The estimate
is unbiased, with products of all scores of an episode in it: where episodes have
hundreds of steps it is mostly noise.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg
from jaxtyping import Array, Float

from hyperirl.curvature import AbstractDamping, Relative, Solution, as_damping
from hyperirl.curvature.solution import diagnose
from hyperirl.hypergradient.cross import AbstractCross
from hyperirl.hypergradient.estimate import (
    AbstractEstimator,
    Estimate,
    implicit_estimate,
)
from hyperirl.hypergradient.outer import outer_gradient
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, log_probs
from hyperirl.problem import Problem
from hyperirl.rewards import rewards_of
from hyperirl.scores import score_rows
from hyperirl.trajectories import Trajectories, discount_weights


class PARL(AbstractEstimator):
    """The implicit hypergradient with the sampled Hessian (Chakraborty et al., 2024).

    The damping is relative to the mean eigenvalue of `alpha F`, as that of `Fisher` is.
    """

    cross: AbstractCross
    damping: AbstractDamping = eqx.field(
        converter=as_damping, default_factory=lambda: Relative(0.1)
    )
    num_iterations: int = eqx.field(static=True, default=30)
    """Of conjugate gradients, with two products with the Hessian each."""

    def update(
        self,
        state: tuple[()],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, tuple[()]]:
        g = outer_gradient(policy, expert, problem)
        rows = score_rows(policy, agent, problem)
        damping = self.damping.effective(rows.squared_norm() / rows.dim)
        product = inner_hessian(policy, reward, agent, problem)
        solution = _least_squares(product, g, damping, self.num_iterations)
        estimate = implicit_estimate(
            solution, self.cross, policy, reward, expert, agent, problem
        )
        return estimate, state


def inner_hessian(
    policy: AbstractPolicy, reward: Callable, agent: Trajectories, problem: Problem
) -> Callable[[Float[Array, " dim"]], Float[Array, " dim"]]:
    """Products with an unbiased estimate of the Hessian of `L_inner`, as it is cut.

    The weight `exp(p - stop(p))` of a step, with `p` the log-probability of all actions
    so far, is 1 and has the derivatives of a likelihood ratio: those of the weighted
    sum are estimates of the derivatives of its expectation (Foerster et al., 2018).
    """
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    weights = discount_weights(agent, problem.discount) / agent.num_episodes
    alpha = problem.temperature.astype(weights.dtype)
    rewards = rewards_of(reward, agent)

    def loss(flat: Float[Array, " dim"]) -> Float[Array, ""]:
        log_pi = log_probs(eqx.combine(unravel(flat), rest), agent)
        so_far = jnp.cumsum(log_pi, axis=1)
        ratio = jnp.exp(so_far - jax.lax.stop_gradient(so_far))
        return jnp.sum(weights * ratio * (alpha * log_pi - rewards))

    return lambda v: jax.jvp(jax.grad(loss), (flat,), (v,))[1]


def _least_squares(
    product: Callable[[Float[Array, " dim"]], Float[Array, " dim"]],
    g: Float[Array, " dim"],
    damping: Float[Array, ""],
    num_iterations: int,
) -> Solution:
    """`(H^2 + damping^2) v = H g`, by conjugate gradients from zero."""
    square = damping.astype(g.dtype) ** 2
    normal = lambda v: product(product(v)) + square * v
    done = float(jnp.finfo(g.dtype).eps)
    v = cg(normal, product(g), tol=done, maxiter=num_iterations)[0]
    residual = jnp.linalg.norm(g - product(v)) / jnp.linalg.norm(g)
    info = diagnose(
        "ConjugateGradient",
        damping=damping,
        converged=jnp.all(jnp.isfinite(v)),
        relative_residual=residual,
        iterations=num_iterations,
        certificate=jnp.inf,
    )
    return Solution(v, info)
