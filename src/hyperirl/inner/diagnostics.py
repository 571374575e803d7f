"""How far from solved: the gradient of `L_inner`, its noise, and what it is worth.

With soft advantages `A = Q - alpha log pi - V`, the gradient is

    grad L_inner = -E sum_t gamma^t A(s_t, a_t) grad log pi(a_t | s_t).

Near the optimum the Hessian is `alpha F` (F the discounted Fisher matrix), so the loss
still to be gained is about `grad' (alpha F)^-1 grad / 2`: Newton's decrement.
"""

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
        return _standard_error(along)

    @property
    def norm_squared(self) -> Float[Array, ""]:
        """`|mean|^2` less what noise adds to it: unbiased, so it can be negative."""
        num_groups = self.groups.shape[0]
        if num_groups == 1:
            return jnp.full((), jnp.nan, jnp.float32)
        spread = jnp.sum((self.groups - self.mean[None, :]) ** 2)
        return self.norm**2 - spread / (num_groups * (num_groups - 1))


def _standard_error(draws: Float[Array, " draws"]) -> Float[Array, ""]:
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
    num_groups = _groups(batch.times.shape[1])
    weights = discounts(batch, problem) * num_groups / batch.num_episodes
    regroup = lambda x: _regroup(x, num_groups)
    params, rest = partition(policy)

    def loss(params, observations, actions, coefficients):
        policy = eqx.combine(params, rest)
        log_probs = jax.vmap(policy.log_prob)(observations, actions)
        return -jnp.sum(coefficients * log_probs)

    def gradient(*data):
        return ravel_pytree(jax.grad(loss)(params, *data))[0]

    coefficients = weights * advantages
    data = batch.observations, batch.actions, coefficients
    return GradientEstimate(jax.lax.map(lambda d: gradient(*d), regroup(data)))


def estimated_gap(
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
    groups of environments.
    """
    num_groups = gradient.groups.shape[0]
    if num_groups < 4:
        nan = jnp.full((), jnp.nan, jnp.float32)
        return nan, nan
    half = num_groups // 2
    fisher = fisher_product(policy, batch, problem)
    right_side = jnp.mean(gradient.groups[:half], axis=0)
    product = lambda v: problem.temperature.astype(v.dtype) * fisher(v)
    solution = conjugate_gradients(product, right_side, num_iterations)
    draws = 0.5 * gradient.groups[half:] @ solution
    return jnp.mean(draws), _standard_error(draws)


def fisher_product(policy: AbstractPolicy, batch: Batch, problem: Problem):
    """`v -> F v`, with `F` the Hessian of the discounted KL from the policy itself."""
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    weights = discounts(batch, problem) / batch.num_episodes
    reference = distributions(policy, batch.observations)

    def divergence(flat):
        moved = eqx.combine(unravel(flat), rest)
        after = distributions(moved, batch.observations)
        kl = jax.vmap(jax.vmap(lambda p, q: p.kl(q)))(reference, after)
        return jnp.sum(weights * kl)

    return lambda v: jax.jvp(jax.grad(divergence), (flat,), (v,))[1]


def conjugate_gradients(product, b: Float[Array, " dim"], num_iterations: int):
    """A fixed number of steps towards the solution of `product(x) = b`.

    Few steps regularize: directions that matter little to the policy are left alone.
    """

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


def _groups(num_envs: int) -> int:
    """The largest number of equal groups, up to 16."""
    return max(n for n in range(1, _MAX_GROUPS + 1) if num_envs % n == 0)


def _regroup(data, num_groups: int):
    """`steps, envs, ...` becomes `groups, steps * envs / groups, ...`."""

    def regroup(x: Array) -> Array:
        x = jnp.swapaxes(x, 0, 1)
        return x.reshape(num_groups, -1, *x.shape[2:])

    return jax.tree.map(regroup, data)
