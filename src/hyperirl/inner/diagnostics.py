"""How far from solved: the gradient of `L_inner`, its noise, and what it is worth.

With soft advantages `A = Q - alpha log pi - V`, the gradient is

    grad L_inner = -E sum_t gamma^t A(s_t, a_t) grad log pi(a_t | s_t).

Near the optimum the Hessian is `alpha F` (F the discounted Fisher matrix), so the loss
still to be gained is about `grad' (alpha F)^-1 grad / 2`: Newton's decrement.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl.inner.acting import Batch, distributions
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem

_MAX_GROUPS = 16
_STRIDE = 8


class GradientEstimate(eqx.Module):
    """Independent estimates of one gradient, from separate groups of environments."""

    groups: Float[Array, "groups dim"]

    @property
    def mean(self) -> Float[Array, " dim"]:
        """The best estimate."""
        return jnp.mean(self.groups, axis=0)

    @property
    def norm(self) -> Float[Array, ""]:
        """Of the mean; noise alone makes it positive."""
        return jnp.linalg.norm(self.mean)

    @property
    def norm_error(self) -> Float[Array, ""]:
        """Standard error of the norm: that of the component along the mean."""
        along = self.groups @ (self.mean / jnp.maximum(self.norm, 1e-30))
        return standard_error(along)

    @property
    def norm_squared(self) -> Float[Array, ""]:
        """`|mean|^2` less what noise adds to it: unbiased, so it can be negative."""
        num_groups = self.groups.shape[0]
        if num_groups == 1:
            return jnp.full((), jnp.nan, jnp.float32)
        spread = jnp.sum((self.groups - self.mean[None, :]) ** 2)
        return self.norm**2 - spread / (num_groups * (num_groups - 1))


def standard_error(draws: Float[Array, " draws"]) -> Float[Array, ""]:
    """Of the mean of independent draws; NaN for a single one."""
    if draws.size == 1:
        return jnp.full((), jnp.nan, jnp.float32)
    return jnp.std(draws, ddof=1) / draws.size**0.5


def inner_gradient(
    policy: AbstractPolicy,
    batch: Batch,
    advantages: Float[Array, "steps envs"],
    problem: Problem,
) -> GradientEstimate:
    """The gradient of `L_inner` with respect to the policy's trained parameters.

    Sums over steps carry the weight `gamma^t` and are divided by the number of episodes
    that began.
    """
    params, rest = partition(policy)

    def loss(params, observations, actions, coefficients):
        policy = eqx.combine(params, rest)
        log_probs = jax.vmap(policy.log_prob)(observations, actions)
        return -jnp.sum(coefficients * log_probs)

    def gradient(*data):
        return ravel_pytree(jax.grad(loss)(params, *data))[0]

    coefficients = discounts(batch, problem) * advantages / batch.num_episodes
    data = by_group((batch.observations, batch.actions, coefficients))
    sums = jax.lax.map(lambda group: gradient(*group), data)
    return GradientEstimate(sums * sums.shape[0])


def newton_decrement(
    policy: AbstractPolicy,
    batch: Batch,
    gradient: GradientEstimate,
    problem: Problem,
    *,
    num_iterations: int = 10,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Newton's decrement and its standard error, free of the bias of squared noise.

    One half of the gradient estimates is solved for by a few steps of conjugate
    gradients, the other half is multiplied with the solution. NaN from fewer than four
    groups of environments. Every eighth step is enough for the Fisher matrix.
    """
    num_groups = gradient.groups.shape[0]
    if num_groups < 4:
        nan = jnp.full((), jnp.nan, jnp.float32)
        return nan, nan
    half = num_groups // 2
    thin = jax.tree.map(lambda x: x[::_STRIDE], batch)
    weights = discounts(thin, problem) * _STRIDE / batch.num_episodes
    fisher = fisher_product(policy, thin.observations, weights)
    right_side = jnp.mean(gradient.groups[:half], axis=0)
    product = lambda v: problem.temperature.astype(v.dtype) * fisher(v)
    solution = conjugate_gradients(product, right_side, num_iterations)
    draws = 0.5 * gradient.groups[half:] @ solution
    return jnp.mean(draws), standard_error(draws)


def fisher_product(
    policy: AbstractPolicy,
    observations: Float[Array, "steps envs obs"],
    weights: Float[Array, "steps envs"],
):
    """`v -> F v`, with `F` the Hessian of the weighted KL from the policy itself."""
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    reference = distributions(policy, observations)

    def divergence(flat):
        moved = eqx.combine(unravel(flat), rest)
        after = distributions(moved, observations)
        kl = jax.vmap(jax.vmap(lambda p, q: p.kl(q)))(reference, after)
        return jnp.sum(weights * kl)

    return lambda v: jax.jvp(jax.grad(divergence), (flat,), (v,))[1]


def conjugate_gradients(product, b: Float[Array, " dim"], num_iterations: int):
    """A fixed number of steps towards the solution of `product(x) = b`.

    Few steps regularize: directions that matter little to the policy are left alone.
    """
    # Apart from `curvature`, whose solver has the opposite aims: it is damped, goes on
    # until a true residual in float64 is small, and reads rows that are not formed
    # here. This one is inside every report, and must be quick to compile and to run.

    def step(carry, _):
        x, r, p, rr = carry
        q = product(p)
        pq = p @ q
        # A direction without curvature, or nothing left to solve: stay.
        length = jnp.where(pq > 1e-12 * (p @ p), rr / pq, 0.0)
        x, r = x + length * p, r - length * q
        new = r @ r
        ratio = jnp.where(rr > 0, new / rr, 0.0)
        return (x, r, r + ratio * p, new), None

    start = jnp.zeros_like(b), b, b, b @ b
    return jax.lax.scan(step, start, length=num_iterations)[0][0]


def discounts(batch: Batch, problem: Problem) -> Float[Array, "steps envs"]:
    """`gamma^t` with `t` counted from the start of the episode."""
    discount = problem.discount.astype(jnp.float32)
    return discount ** batch.times.astype(jnp.float32)


def by_group(data: Any) -> Any:
    """`steps, envs, ...` becomes `groups, steps * envs / groups, ...`.

    There are as many equal groups as possible, up to 16.
    """

    def regroup(x: Array) -> Array:
        num_envs = x.shape[1]
        sizes = range(1, _MAX_GROUPS + 1)
        num_groups = max(n for n in sizes if num_envs % n == 0)
        x = jnp.swapaxes(x, 0, 1)
        return x.reshape(num_groups, -1, *x.shape[2:])

    return jax.tree.map(regroup, data)
