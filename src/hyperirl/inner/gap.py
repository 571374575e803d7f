"""The optimality gap `L_inner - min L_inner`: exact where it can be, else estimated.

For any policy the gap is `alpha E_pi sum_t gamma^t KL(pi(. | s_t), pi*(. | s_t))`, with
`pi*` the soft-optimal policy.

- The closed form knows the gap (finite MDPs): that is it. The error is 0.
- It knows `pi*` only (LQR): the states are those of the batch. The error is that of
  sampling them.
- No closed form for environment and reward: Newton's decrement (see `diagnostics`),
  which knows the policy class, and means what it says only near the optimum. Far away
  it can be much too large.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Batch, distributions
from hyperirl.inner.diagnostics import (
    GradientEstimate,
    by_group,
    discounts,
    newton_decrement,
    standard_error,
)
from hyperirl.inner.solver import Reward
from hyperirl.policies import AbstractPolicy, Gaussian
from hyperirl.problem import Problem


def optimality_gap(
    environment: AbstractWorld,
    reward: Reward,
    policy: AbstractPolicy,
    batch: Batch,
    gradient: GradientEstimate,
    problem: Problem,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The gap and its standard error, by the best way there is."""
    closed = exact.closed_form(environment)
    if closed is None or not closed.handles(reward):
        return newton_decrement(policy, batch, gradient, problem)
    gap = closed.gap(policy, reward, problem)
    if gap is not None:
        return gap.astype(jnp.float32), jnp.zeros((), jnp.float32)
    return divergence(policy, closed.optimal_policy(reward, problem), batch, problem)


def divergence(
    policy: AbstractPolicy, best: AbstractPolicy, batch: Batch, problem: Problem
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """`alpha E sum_t gamma^t KL(policy, best)` over the states of a batch, and error.

    Infinite for a squashed policy, which cannot represent a Gaussian.
    """
    ours = distributions(policy, batch.observations)
    if not isinstance(ours, Gaussian):
        nan = jnp.full((), jnp.nan, jnp.float32)
        return nan, nan
    theirs = distributions(best, batch.observations)
    kl = jax.vmap(jax.vmap(lambda p, q: p.kl(q)))(ours, theirs)
    weighted = discounts(batch, problem) * kl / batch.num_episodes
    sums = jnp.sum(by_group(weighted), axis=1)
    draws = problem.temperature * sums * sums.size
    return jnp.mean(draws), standard_error(draws)
