"""The hypergradient from trajectories, and how far it can be believed."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from hyperirl.curvature import AbstractSolver, Info, Solution
from hyperirl.hypergradient.cross import AbstractCross
from hyperirl.hypergradient.outer import outer_gradient
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import rewards_of
from hyperirl.scores import score_rows
from hyperirl.trajectories import Trajectories, discount_weights, halves


class Diagnostics(eqx.Module):
    """What an estimate says about itself; NaN where the estimator does not know."""

    norm: Float[Array, ""]
    """`|h|`."""
    snr: Float[Array, ""]
    """`|h|` over the standard deviation of its noise, from two halves of the batch."""
    ml_irl_cosine: Float[Array, ""]
    """Between `h` and the ML-IRL gradient: near 1 with much data, a rich policy and a
    solved inner problem. Near the optimum both are mostly noise, and so is its sign."""
    solve: Info | None
    """Of the curvature solver, where there is one."""


class Estimate(eqx.Module):
    """A gradient with respect to the reward's parameters: descend on `h`."""

    h: PyTree[Array]
    diagnostics: Diagnostics


class AbstractEstimator(eqx.Module):
    """Estimates `d L_outer(theta*(phi)) / d phi`.

    Like the transformations of optax, an estimator may remember earlier steps: what it
    remembers is a state, from `init`, that goes through every `update`.
    """

    def init(self, reward: Callable, policy: AbstractPolicy) -> PyTree[Array]:
        """What is remembered before the first step; nothing, by default."""
        return ()

    @abc.abstractmethod
    def update(
        self,
        state: PyTree[Array],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, PyTree[Array]]:
        """The hypergradient at a policy that solves the inner problem, and a new state.

        Args:
            state: What is remembered; the new one has the same structure and shapes.
            policy: The solution of the inner problem for `reward`.
            reward: What is being learned.
            expert: The demonstrations.
            agent: Trajectories of `policy`; an even number of them.
            problem: Temperature and discount.
        """

    def __call__(
        self,
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> Estimate:
        """The hypergradient of one step that remembers nothing."""
        state = self.init(reward, policy)
        return self.update(state, policy, reward, expert, agent, problem)[0]


class Fisher(AbstractEstimator):
    """The implicit hypergradient, with the Fisher matrix for the Hessian.

    `g = grad L_outer`, `(alpha F + damping I) v = g`, and the cross product with `v`.
    """

    solver: AbstractSolver
    cross: AbstractCross
    expected: bool = eqx.field(static=True, default=False)
    """Whether `F` has the expectation over actions in closed form."""

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
        rows = score_rows(policy, agent, problem, expected=self.expected)
        solution = self.solver(rows, g)
        estimate = implicit_estimate(
            solution, self.cross, policy, reward, expert, agent, problem
        )
        return estimate, state


class MLIRL(AbstractEstimator):
    """`h = (1/alpha) (E_pi - E_expert) sum_t gamma^t grad r` (Zeng et al., 2022)."""

    def update(
        self,
        state: tuple[()],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, tuple[()]]:
        gradient = lambda part: ml_irl_gradient(reward, expert, part, problem)
        h = gradient(agent)
        one = jnp.ones((), jnp.float32)
        snr = signal_to_noise(jax.vmap(gradient)(halves(agent)))
        return Estimate(h, Diagnostics(norm(h), snr, one, None)), state


def implicit_estimate(
    solution: Solution,
    cross: AbstractCross,
    policy: AbstractPolicy,
    reward: Callable,
    expert: Trajectories,
    agent: Trajectories,
    problem: Problem,
) -> Estimate:
    """The cross product with a solution `v`, whatever curvature it was solved with."""

    def product(part: Trajectories) -> PyTree[Array]:
        b = cross.weights(policy, part, problem, solution.v)
        return weighted_reward_gradient(reward, part, problem, b)

    return judged(product, reward, expert, agent, problem, solution.info)


def judged(
    gradient: Callable[[Trajectories], PyTree[Array]],
    reward: Callable,
    expert: Trajectories,
    agent: Trajectories,
    problem: Problem,
    solve: Info | None = None,
) -> Estimate:
    """`gradient(agent)`, and how far it can be believed."""
    h = gradient(agent)
    reference = ml_irl_gradient(reward, expert, agent, problem)
    diagnostics = Diagnostics(
        norm=norm(h),
        snr=signal_to_noise(jax.vmap(gradient)(halves(agent))),
        ml_irl_cosine=cosine(h, reference),
        solve=solve,
    )
    return Estimate(h, diagnostics)


@eqx.filter_jit  # Traced once for the estimate, its check and its reference.
def weighted_reward_gradient(
    reward: Callable,
    trajectories: Trajectories,
    problem: Problem,
    weights: Float[Array, "episodes steps"],
) -> PyTree[Array]:
    """`grad_phi (1/N) sum_tau sum_t gamma^t r_phi(s_t, a_t) weights_t`."""
    params, rest = partition(reward)
    weights = discount_weights(trajectories, problem.discount) * weights

    def total(params):
        rewards = rewards_of(eqx.combine(params, rest), trajectories)
        return jnp.sum(weights * rewards) / trajectories.num_episodes

    return jax.grad(total)(params)


def ml_irl_gradient(
    reward: Callable, expert: Trajectories, agent: Trajectories, problem: Problem
) -> PyTree[Array]:
    """`(1/alpha) (E_pi - E_expert) sum_t gamma^t grad r`."""
    total = lambda part: weighted_reward_gradient(
        reward, part, problem, jnp.ones_like(part.mask, part.observations.dtype)
    )
    difference = lambda a, b: (a - b) / problem.temperature.astype(a.dtype)
    return jax.tree.map(difference, total(agent), total(expert))


def signal_to_noise(pair: PyTree[Array]) -> Float[Array, ""]:
    """Of the mean of two independent estimates, stacked on the first axis.

    `h1 . h2` has the square of the signal as its expectation, `|h1 - h2|^2 / 4` that of
    the noise of their mean.
    """
    first, second = jax.vmap(lambda h: ravel_pytree(h)[0])(pair)
    signal = jnp.maximum(first @ second, 0.0)
    noise = jnp.sum((first - second) ** 2) / 4
    return jnp.sqrt(signal / noise)


def cosine(a: PyTree[Array], b: PyTree[Array]) -> Float[Array, ""]:
    """Of the angle between two gradients; NaN if one is zero."""
    a, b = ravel_pytree(a)[0], ravel_pytree(b)[0]
    return (a @ b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


def norm(h: PyTree[Array]) -> Float[Array, ""]:
    """The length of a gradient."""
    return jnp.linalg.norm(ravel_pytree(h)[0])
