"""Three estimates of the cross product between policy and reward.

The mixed derivative of `L_inner`, times `v`, is minus

    h = E sum_t gamma^t grad_phi r(s_t, a_t) b_t,    b_t = sum_{k<=t} q_k,

with `q_k = grad log pi(a_k | s_k) . v`. Everything noisy is in the weights `b`: the
estimates differ in what they put there, and the reward is differentiated once.

- `Raw`: the prefix sums, as the paper has them.
- `Centred`: `q` has mean zero in every state, so the mean of the other trajectories may
  be subtracted from it. Unbiased, with a fraction of the variance.
- `Adjoint`: read backwards, `h = E sum_k gamma^k q_k Psi(s_k, a_k)` with `Psi` the
  expected reward gradient to go. In features, `Psi = Theta' f` solves the temporal
  difference equations `A Theta = B`. As `h = Theta' c = B' y` with `A' y = c` and
  `c = E sum_k gamma^k E_a [q f]`, neither `Theta` nor `B` is ever formed: the weights
  are `beta_t = f(s_t, a_t) . y`. They are a function of state and action, where the
  prefix sums are a random walk.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl.lstd import (
    Features,
    adjoint_weights,
    input_normalizer,
    temporal_differences,
)
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, log_probs
from hyperirl.problem import Problem
from hyperirl.trajectories import Trajectories, discount_weights


class AbstractCross(eqx.Module):
    """Gives each step of the agent's trajectories its weight `b`."""

    @abc.abstractmethod
    def weights(
        self,
        policy: AbstractPolicy,
        agent: Trajectories,
        problem: Problem,
        v: Float[Array, " dim"],
    ) -> Float[Array, "episodes steps"]:
        """The weights `b`, to be held constant when the reward is differentiated."""


class Raw(AbstractCross):
    """Prefix sums of the products of scores with `v`: the paper's estimator."""

    def weights(
        self,
        policy: AbstractPolicy,
        agent: Trajectories,
        problem: Problem,
        v: Float[Array, " dim"],
    ) -> Float[Array, "episodes steps"]:
        return jnp.cumsum(score_products(policy, agent, v), axis=1)


class Centred(AbstractCross):
    """Prefix sums of `q` minus the mean of the other trajectories at the same time.

    "The other trajectories" are those still alive; one that is alone is left as it is.
    """

    def weights(
        self,
        policy: AbstractPolicy,
        agent: Trajectories,
        problem: Problem,
        v: Float[Array, " dim"],
    ) -> Float[Array, "episodes steps"]:
        q = score_products(policy, agent, v)
        alive = jnp.sum(agent.mask, axis=0, keepdims=True).astype(q.dtype)
        others = jnp.sum(q, axis=0, keepdims=True) - q
        mean_of_others = others / jnp.maximum(alive - 1, 1)
        return jnp.cumsum(jnp.where(agent.mask, q - mean_of_others, 0.0), axis=1)


class Adjoint(AbstractCross):
    """An adjoint critic in place of the prefix sums."""

    features: Features
    ridge: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)

    def weights(
        self,
        policy: AbstractPolicy,
        agent: Trajectories,
        problem: Problem,
        v: Float[Array, " dim"],
    ) -> Float[Array, "episodes steps"]:
        source = lambda features: _source(features, policy, agent, problem, v)
        return critic_weights(self.features, policy, agent, problem, source, self.ridge)


def critic_weights(
    features: Features,
    policy: AbstractPolicy,
    agent: Trajectories,
    problem: Problem,
    source: Callable[[Features], Float[Array, " features"]],
    ridge: Float[Array, ""],
) -> Float[Array, "episodes steps"]:
    """`beta_t = f(s_t, a_t) . y` with `A' y = source(f)`; 0 in the padding.

    The features `f` are those given, normalized anew for this batch.
    """
    features = eqx.tree_at(lambda f: f.normalizer, features, input_normalizer(agent))
    system = temporal_differences(features, policy, agent, problem)
    y = adjoint_weights(system, source(features), ridge)
    values = jax.vmap(jax.vmap(features))
    beta = values(agent.observations[:, :-1], agent.actions) @ y
    return jnp.where(agent.mask, beta, 0.0)


def _source(
    features: Features,
    policy: AbstractPolicy,
    agent: Trajectories,
    problem: Problem,
    v: Float[Array, " dim"],
) -> Float[Array, " features"]:
    """`c = E sum_k gamma^k E_a [q f]`: how the mean features move along `v`."""
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    weights = discount_weights(agent, problem.discount) / agent.num_episodes

    def total(flat):
        moved = eqx.combine(unravel(flat), rest)
        mean = jax.vmap(jax.vmap(lambda s: features.mean(s, moved)))
        means = mean(agent.observations[:, :-1])
        return jnp.einsum("nt,ntp->p", weights, means)

    return jax.jvp(total, (flat,), (v,))[1]


def score_products(
    policy: AbstractPolicy, agent: Trajectories, v: Float[Array, " dim"]
) -> Float[Array, "episodes steps"]:
    """`q_t = grad log pi(a_t | s_t) . v`, one forward product; 0 in the padding."""
    params, rest = partition(policy)
    flat, unravel = ravel_pytree(params)
    values = lambda flat: log_probs(eqx.combine(unravel(flat), rest), agent)
    return jax.jvp(values, (flat,), (v,))[1]
