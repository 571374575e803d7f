"""The exact solvers under the common interface: one update, and the answer is there."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, Tabular
from hyperirl.inner.solver import AbstractInnerSolver, Report, Reward
from hyperirl.policies import AbstractPolicy, CategoricalHead, Gaussian, Policy
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward


class ExactState(eqx.Module):
    """Nothing but the policy."""

    policy: AbstractPolicy


class SoftValueIteration(AbstractInnerSolver):
    """The soft-optimal policy of a finite MDP; the policy must be a softmax table."""

    @property
    def steps_per_update(self) -> int:
        return 0

    def init(
        self,
        environment: AbstractEnvironment,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> ExactState:
        del key
        if not isinstance(environment, Tabular):
            raise ValueError(
                "Soft value iteration solves tabular environments, got "
                f"{type(environment).__name__}. Use `PPO` or `SAC` there."
            )
        _logits(policy)
        return ExactState(policy)

    def run(
        self,
        environment: AbstractEnvironment,
        reward: Reward,
        state: ExactState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[ExactState, Report]:
        del key
        assert isinstance(environment, Tabular)  # As `init` checked.
        table = exact.tabular.reward_table(environment, reward)
        old = _logits(state.policy)
        best = exact.tabular.soft_value_iteration(environment, table, problem).logits
        logits = jnp.where(num_updates > 0, best.astype(old.dtype), old)
        policy = eqx.tree_at(
            lambda p: p.network.layers[0].weight, state.policy, logits.T
        )
        loss = lambda x: exact.tabular.inner_loss(environment, x, table, problem)
        value, gradient = jax.value_and_grad(loss)(logits.astype(jnp.float64))
        visits = exact.tabular.occupancy(environment, logits, problem.discount)
        share = visits / jnp.sum(visits)
        log_pi = jax.nn.log_softmax(logits.astype(jnp.float64))
        moved = log_pi - jax.nn.log_softmax(old.astype(jnp.float64))
        return ExactState(policy), _report(
            gradient_norm=jnp.linalg.norm(gradient),
            kl=jnp.sum(share * moved),
            entropy=-jnp.sum(share * log_pi),
            soft_return=-value,
            gap=exact.tabular.optimality_gap(environment, logits, table, problem),
        )


class SoftRiccati(AbstractInnerSolver):
    """The soft-optimal policy of LQR for quadratic rewards.

    The policy must be linear-Gaussian with a full covariance.
    """

    @property
    def steps_per_update(self) -> int:
        return 0

    def init(
        self,
        environment: AbstractEnvironment,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> ExactState:
        del key
        if not isinstance(environment, LQR):
            raise ValueError(
                "The soft Riccati equation solves LQR, got "
                f"{type(environment).__name__}. Use `PPO` or `SAC` there."
            )
        assert isinstance(policy, Policy)
        exact.lqr.gain_and_scale(policy)  # An error for other kinds.
        return ExactState(policy)

    def run(
        self,
        environment: AbstractEnvironment,
        reward: Reward,
        state: ExactState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[ExactState, Report]:
        del key
        assert isinstance(environment, LQR)  # As `init` checked.
        if not isinstance(reward, QuadraticReward):
            raise ValueError(
                f"The soft Riccati equation needs a `QuadraticReward`, got {reward!r}. "
                "The true one is `hyperirl.inner.true_reward(environment)`."
            )
        old = state.policy
        best = exact.lqr.soft_optimal_policy(environment, reward, problem)
        choose = lambda new, old: jnp.where(num_updates > 0, new, old)
        policy = jax.tree.map(choose, best, old)
        assert isinstance(policy, Policy)
        loss = lambda p: exact.lqr.inner_loss(environment, p, reward, problem)
        value, gradient = eqx.filter_value_and_grad(loss)(policy)
        squares = [
            jnp.sum(g.astype(jnp.float64) ** 2) for g in jax.tree.leaves(gradient)
        ]
        entropy = policy.entropy(jnp.zeros(environment.observation_size, jnp.float32))
        return ExactState(policy), _report(
            gradient_norm=jnp.sqrt(sum(squares)),
            kl=_mean_kl(environment, policy, old, problem),
            entropy=entropy,
            soft_return=-value,
            gap=exact.lqr.optimality_gap(environment, policy, reward, problem),
        )


def _logits(policy: AbstractPolicy) -> Float[Array, "states actions"]:
    """Those of a softmax table; an error for any other kind of policy."""
    if not (
        isinstance(policy, Policy)
        and isinstance(policy.head, CategoricalHead)
        and len(policy.network.layers) == 1
        and policy.network.layers[0].bias is None
        and policy.normalizer is None
    ):
        raise ValueError(
            "Soft value iteration needs a softmax table: no hidden layers, biases or "
            "normalizer. Make one with `hyperirl.policies.softmax_table`."
        )
    return policy.network.layers[0].weight.T


def _mean_kl(environment, new: Policy, old, problem: Problem) -> Float[Array, ""]:
    """`E KL(new, old)` over the states that `new` visits, in closed form."""
    moments = exact.lqr.moments(environment, new, problem.discount)
    K, C = exact.lqr.gain_and_scale(new)
    old_K, old_C = exact.lqr.gain_and_scale(old)
    zero = jnp.zeros(C.shape[0])
    spread = Gaussian(zero, C).kl(Gaussian(zero, old_C))
    apart = jax.scipy.linalg.solve_triangular(old_C, K - old_K, lower=True)
    states = moments.states / moments.weight
    return spread + 0.5 * jnp.trace(apart @ states @ apart.T)


def _report(**known: Float[Array, ""]) -> Report:
    """Exact numbers, without errors and steps."""
    known = {name: value.astype(jnp.float32) for name, value in known.items()}
    zero = jnp.zeros((), jnp.float32)
    return Report(
        gradient_norm_error=zero,
        gradient_norm_squared=known["gradient_norm"] ** 2,
        gap_error=zero,
        steps=jnp.zeros((), jnp.int32),
        **known,
    )
