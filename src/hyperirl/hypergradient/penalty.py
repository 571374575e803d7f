"""The penalty method: the inner optimum is not differentiated but paid for.

Shen, Yang and Chen (2025) replace `min L_outer(theta*(phi))` by

    min_{phi, theta} L_outer(theta) + strength (max_pi J_phi(pi) - J_phi(theta)),

with `J = -L_inner` the soft return. The gap's gradient in `phi` needs no derivative of
a solution, only two expectations (Danskin's theorem). With the demonstrations in
`L_outer`, which does not depend on `phi` otherwise,

    h = strength (E_pi* - E_theta) sum_t gamma^t grad_phi r(s_t, a_t),

where `theta` minimizes the penalized loss for this `phi`: the policy that gives up a
little soft return to make the demonstrations likelier.

What is computed. The gap is `alpha E_theta sum_t gamma^t KL(theta, pi*)`, exactly; its
expectation is taken over the agent's states, which are those of `pi*`. There `theta` is
found by gradient descent from where the last step ended, and the two expectations of
`h` differ by what the actions of `theta` change, in the same states, as the critic of
`Adjoint` sees it. For `strength -> infinity` all of this is exact, with an error of
order `1 / strength`: `theta = pi* - v / strength`, and `h` is that of `Fisher`.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from hyperirl.curvature import AbstractDamping, Relative, as_damping
from hyperirl.hypergradient.cross import critic_weights
from hyperirl.hypergradient.estimate import (
    AbstractEstimator,
    Estimate,
    judged,
    weighted_reward_gradient,
)
from hyperirl.hypergradient.outer import outer_loss
from hyperirl.lstd import Features
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.scores import score_rows
from hyperirl.trajectories import Trajectories, discount_weights, steps_taken


class Penalty(AbstractEstimator):
    """The value-gap penalty (Shen et al., 2025), with a second policy as its memory.

    The memory is `strength (theta - pi)`, which hardly depends on the strength. It is
    damped as the solution of `Fisher` is, to be comparable.
    """

    features: Features
    damping: AbstractDamping = eqx.field(
        converter=as_damping, default_factory=lambda: Relative(0.1)
    )
    strength: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e3)
    ridge: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)
    num_steps: int = eqx.field(static=True, default=30)
    """Of gradient descent, for each hypergradient."""

    def __check_init__(self):
        known = not isinstance(self.strength, Tracer)
        if known and not 0 < self.strength < jnp.inf:
            raise ValueError(
                f"`strength` must be positive and finite, got {self.strength}: it is "
                "what the inner problem's gap costs. Try 1000, or method=fisher for "
                "the limit."
            )

    def init(self, reward: Callable, policy: AbstractPolicy) -> Float[Array, " dim"]:
        return jnp.zeros_like(ravel_pytree(partition(policy)[0])[0])

    def update(
        self,
        state: Float[Array, " dim"],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, Float[Array, " dim"]]:
        loss = self.penalized_loss(policy, expert, agent, problem)
        state = descend(jax.grad(loss), state, self.num_steps)
        moved = self.moved(policy, state)

        def gradient(part: Trajectories) -> PyTree[Array]:
            source = lambda features: self._source(
                features, policy, moved, part, problem
            )
            beta = critic_weights(
                self.features, policy, part, problem, source, self.ridge
            )
            return weighted_reward_gradient(reward, part, problem, beta)

        return judged(gradient, reward, expert, agent, problem), state

    def moved(
        self, policy: AbstractPolicy, offset: Float[Array, " dim"]
    ) -> AbstractPolicy:
        """The policy at `pi + offset / strength`."""
        params, rest = partition(policy)
        flat, unravel = ravel_pytree(params)
        step = offset / self.strength.astype(flat.dtype)
        return eqx.combine(unravel(flat + step), rest)

    def penalized_loss(
        self,
        policy: AbstractPolicy,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> Callable[[Float[Array, " dim"]], Float[Array, ""]]:
        """Of the offset `u`, times the strength, and damped.

        To leading order it is `g . u + u' (alpha F + damping) u / 2`, whatever the
        strength.
        """
        weights = discount_weights(agent, problem.discount) / agent.num_episodes
        observations = steps_taken(agent)[0]
        rows = score_rows(policy, agent, problem)
        damping = self.damping.effective(rows.squared_norm() / rows.dim)
        strength, alpha = (
            x.astype(weights.dtype) for x in (self.strength, problem.temperature)
        )

        def loss(offset: Float[Array, " dim"]) -> Float[Array, ""]:
            theta = self.moved(policy, offset)
            apart = lambda s: theta.distribution(s).kl(policy.distribution(s))
            gap = alpha * jnp.sum(weights * jax.vmap(jax.vmap(apart))(observations))
            likely = outer_loss(theta, expert, problem)
            near = damping.astype(offset.dtype) / 2 * jnp.sum(offset**2)
            return strength * (likely + strength * gap) + near

        return loss

    def _source(
        self,
        features: Features,
        policy: AbstractPolicy,
        moved: AbstractPolicy,
        agent: Trajectories,
        problem: Problem,
    ) -> Float[Array, " features"]:
        """`strength E sum_t gamma^t [E_pi f - E_theta f]`."""
        weights = discount_weights(agent, problem.discount) / agent.num_episodes
        off = lambda s: features.mean(s, policy) - features.mean(s, moved)
        means = jax.vmap(jax.vmap(off))(steps_taken(agent)[0])
        strength = self.strength.astype(means.dtype)
        return strength * jnp.einsum("nt,ntp->p", weights, means)


def descend(
    gradient: Callable[[Float[Array, " dim"]], Float[Array, " dim"]],
    start: Float[Array, " dim"],
    num_steps: int,
) -> Float[Array, " dim"]:
    """Where the gradient was smallest in so many steps of Barzilai and Borwein (1988).

    Their step lengths follow the curvature that is met, so that there is no rate to
    choose; the first is that of the steepest descent of a quadratic.
    """
    first = gradient(start)
    bent = jax.jvp(gradient, (start,), (first,))[1]
    length = _ratio(first @ first, first @ bent, 1.0)

    def step(carry, _):
        x, slope, length, best, least = carry
        new = x - length * slope
        slope_there = gradient(new)
        moved, bent = new - x, slope_there - slope
        length = _ratio(moved @ moved, moved @ bent, length)
        size = slope_there @ slope_there
        best = jnp.where(size < least, new, best)
        return (new, slope_there, length, best, jnp.minimum(size, least)), None

    carry = start, first, length, start, first @ first
    return jax.lax.scan(step, carry, length=num_steps)[0][3]


def _ratio(above: Float[Array, ""], below: Float[Array, ""], other):
    """A positive quotient, or what to take where there is none."""
    return jnp.where(below > 0, above / jnp.where(below > 0, below, 1.0), other)
