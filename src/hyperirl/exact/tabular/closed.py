"""Finite MDPs have a closed form for every reward."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from hyperirl.environments import Tabular
from hyperirl.exact._float64 import float64
from hyperirl.exact.closed import AbstractClosedForm, Standing, closed_form
from hyperirl.exact.tabular.losses import (
    hypergradient,
    inner_loss,
    ml_irl_gradient,
    optimality_gap,
)
from hyperirl.exact.tabular.solution import (
    reward_table,
    soft_optimal_policy,
    soft_value_iteration,
)
from hyperirl.exact.tabular.visits import demo_weights, occupancy
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, Categorical, Policy, softmax_table
from hyperirl.problem import Problem
from hyperirl.rewards import TableReward
from hyperirl.trajectories import Trajectories


class TabularClosedForm(AbstractClosedForm):
    """Soft value iteration; the policies are softmax tables."""

    mdp: Tabular

    method: ClassVar[str] = "soft value iteration"
    rewards: ClassVar[str] = "any reward"
    policies: ClassVar[str] = "a softmax table"

    def true_reward(self) -> TableReward:
        return TableReward(self.mdp.rewards)

    def handles(self, reward: Callable) -> bool:
        return True

    def blank_policy(self) -> Policy:
        return softmax_table(jnp.zeros(self.mdp.rewards.shape, jnp.float32))

    def optimal_policy(self, reward: Callable, problem: Problem) -> Policy:
        return soft_optimal_policy(self.mdp, reward, problem)

    def judge(
        self, policy: Policy, before: Policy, reward: Callable, problem: Problem
    ) -> Standing:
        """The parameters are the logits."""
        mdp, table = self.mdp, reward_table(self.mdp, reward)
        logits = _table(policy)
        loss = lambda logits: inner_loss(mdp, logits, table, problem)
        value, gradient = jax.value_and_grad(loss)(logits)
        visits = occupancy(mdp, logits, problem.discount)
        share = visits / jnp.sum(visits)
        log_pi = jax.nn.log_softmax(logits)
        log_old = jax.nn.log_softmax(_table(before))
        return Standing(
            inner_loss=value,
            gradient_norm=jnp.linalg.norm(gradient),
            gap=optimality_gap(mdp, logits, table, problem),
            entropy=-jnp.sum(share * log_pi),
            kl=jnp.sum(share * (log_pi - log_old)),
        )

    def gap(
        self, policy: AbstractPolicy, reward: Callable, problem: Problem
    ) -> Float[Array, ""]:
        """Known for every policy: all its states are."""
        states = jnp.arange(self.mdp.num_states, dtype=jnp.int32)
        chosen = jax.vmap(policy.distribution)(jax.vmap(self.mdp.observe)(states))
        assert isinstance(chosen, Categorical)
        table = reward_table(self.mdp, reward)
        return optimality_gap(self.mdp, chosen.logits, table, problem)

    def hypergradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        at = lambda mdp, table, weights: hypergradient(mdp, table, problem, weights)
        return self._pull_back(at, reward, expert, problem)

    def max_ent_gradient(
        self, reward: Callable, expert: Trajectories, problem: Problem
    ) -> PyTree[Array]:
        def at(mdp, table, weights):
            logits = soft_value_iteration(mdp, table, problem).logits
            cut = expert.num_steps
            return ml_irl_gradient(mdp, logits, problem, weights, horizon=cut)

        return self._pull_back(at, reward, expert, problem)

    def _pull_back(
        self,
        gradient: Callable,
        reward: Callable,
        expert: Trajectories,
        problem: Problem,
    ) -> PyTree[Array]:
        """A gradient in the table, in the parameters that the table is made of."""
        params, rest = partition(reward)
        table = lambda params: reward_table(self.mdp, eqx.combine(params, rest))
        values, pull_back = jax.vjp(table, params)
        weights = demo_weights(expert, problem.discount, values.shape[1])
        h = gradient(self.mdp, values, weights)
        return pull_back(h.astype(values.dtype))[0]


def _table(policy: Policy) -> Float[Array, "states actions"]:
    """The logits of a softmax table, in `float64`."""
    return float64(policy.network.layers[0].weight.T)


@closed_form.register(Tabular)
def _closed_form(environment: Tabular) -> TabularClosedForm:
    return TabularClosedForm(environment)
