"""The hypergradient without a Fisher matrix: the soft Bellman equation, differentiated.

A soft-optimal policy has `log pi = (Q - V) / alpha`, so its derivative with respect to
the reward's parameters is `(Psi - E_a Psi) / alpha`, with `Psi(s, a)` the expected
discounted reward gradient to go. So the outer loss has

    h = -(1/alpha) E_expert sum_t gamma^t [Psi(s_t, a_t) - E_a Psi(s_t, a)]

(Yang, Gao and Yuan, 2024). In features, `Psi = Theta' f` with `A Theta = B`, and the
adjoint trick of `Adjoint` leaves one small system: `A' y = c` with the expert's
`c = E_expert sum_t gamma^t [f(s_t, a_t) - E_a f(s_t, a)]`.

No parameter of the policy appears. The Fisher form without damping is the same with
`Psi - E_a Psi` projected on the policy's scores, in the mean square over the agent's
visits: the two agree at every policy whose scores span all that can be done, and this
one credits a restricted policy with moves it cannot make.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from hyperirl.hypergradient.cross import critic_weights
from hyperirl.hypergradient.estimate import (
    AbstractEstimator,
    Estimate,
    cosine,
    judged,
    weighted_reward_gradient,
)
from hyperirl.lstd import Features
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.trajectories import (
    Trajectories,
    discount_weights,
    steps_taken,
)


class SoftBellman(AbstractEstimator):
    """`h = -(1/alpha) E_expert sum_t gamma^t [Psi - E_a Psi]`: no solve, no damping."""

    features: Features
    ridge: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)

    def update(
        self,
        state: tuple[()],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, tuple[()]]:
        gradient = lambda part: self.gradient(policy, reward, expert, part, problem)
        return judged(gradient, reward, expert, agent, problem), state

    def gradient(
        self,
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> PyTree[Array]:
        """`h` alone."""
        source = lambda features: _source(features, policy, expert, problem)
        beta = critic_weights(self.features, policy, agent, problem, source, self.ridge)
        weights = -beta / problem.temperature.astype(beta.dtype)
        return weighted_reward_gradient(reward, agent, problem, weights)

    def cosine(
        self,
        h: PyTree[Array],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> Float[Array, ""]:
        """Of the angle between this gradient and another one of the same step.

        Low where the policy cannot follow the reward, the critic's features are too
        poor, or `h` is mostly noise or damping.
        """
        return cosine(h, self.gradient(policy, reward, expert, agent, problem))


def _source(
    features: Features, policy: AbstractPolicy, expert: Trajectories, problem: Problem
) -> Float[Array, " features"]:
    """`c`: how the expert's features differ from the policy's in the same states."""
    weights = discount_weights(expert, problem.discount) / expert.num_episodes
    observations, actions = steps_taken(expert)
    taken = jax.vmap(jax.vmap(features))(observations, actions)
    mean = jax.vmap(jax.vmap(lambda s: features.mean(s, policy)))(observations)
    return jnp.einsum("nt,ntp->p", weights, taken - mean)
