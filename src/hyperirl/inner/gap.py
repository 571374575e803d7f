"""The optimality gap `L_inner - min L_inner`: exact where it can be, else estimated.

For any policy the gap is `alpha E_pi sum_t gamma^t KL(pi(. | s_t), pi*(. | s_t))`, with
`pi*` the soft-optimal policy.

- Tabular MDPs: computed from that, by linear algebra. The error is 0.
- LQR with a quadratic reward: `pi*` is exact, the states are those of the batch. The
  error is that of sampling them.
- Everything else: Newton's decrement (see `diagnostics`), which knows the policy class,
  and means what it says only near the optimum. Far away it can be much too large.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, Tabular
from hyperirl.inner.acting import Batch, distributions
from hyperirl.inner.diagnostics import (
    GradientEstimate,
    by_group,
    discounts,
    newton_decrement,
    standard_error,
)
from hyperirl.inner.solver import Reward
from hyperirl.policies import AbstractPolicy, Categorical, Gaussian
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward, TableReward


def true_reward(environment: AbstractEnvironment) -> Reward:
    """The environment's own reward, in the form that exact answers know."""
    if isinstance(environment, LQR) and _closed_form(environment):
        return exact.lqr.true_reward(environment)
    if isinstance(environment, Tabular):
        return TableReward(environment.rewards)
    return environment.reward


def _closed_form(environment: LQR) -> bool:
    """Whether nothing is clipped and no state ends an episode."""
    return math.isinf(environment.max_action) and math.isinf(environment.max_norm)


def optimality_gap(
    environment: AbstractEnvironment,
    reward: Reward,
    policy: AbstractPolicy,
    batch: Batch,
    gradient: GradientEstimate,
    problem: Problem,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The gap and its standard error, by the best way there is."""
    if isinstance(environment, Tabular):
        return tabular_gap(environment, reward, policy, problem)
    if (
        isinstance(environment, LQR)
        and _closed_form(environment)
        and isinstance(reward, QuadraticReward)
    ):
        best = exact.lqr.soft_optimal_policy(environment, reward, problem)
        return divergence(policy, best, batch, problem)
    return newton_decrement(policy, batch, gradient, problem)


def tabular_gap(
    environment: Tabular, reward: Reward, policy: AbstractPolicy, problem: Problem
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Exact, for a policy of any kind on a finite MDP."""
    states = jnp.arange(environment.num_states, dtype=jnp.int32)
    chosen = distributions(policy, jax.vmap(environment.observe)(states))
    assert isinstance(chosen, Categorical)
    table = exact.tabular.reward_table(environment, reward)
    gap = exact.tabular.optimality_gap(environment, chosen.logits, table, problem)
    return gap.astype(jnp.float32), jnp.zeros((), jnp.float32)


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
