"""Steps of the reward that are measured by how far they move the policy.

A soft-optimal policy has `log pi = (Q - V) / alpha`, so its score with respect to the
reward's parameters is `(Psi(s, a) - E_a Psi(s, a)) / alpha`, with `Psi` the expected
discounted reward gradient to go. Over the expert's states,

    G = E sum_t gamma^t Var_a [Psi] / alpha^2

is the curvature of the outer loss where the demonstrations are explained, and
`d' G d / 2` is how far a step `d` moves the policy there, in discounted nats. A reward
may change by 0.01 a step and the policies be worlds apart, or by a potential and they
are the same: a plain gradient cannot know, `G` does.

In features `f`, `Psi = Theta' f` solves the temporal difference equations
`A Theta = B`, so that `G = U' U` with as many rows in `U` as there are features.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from hyperirl.lstd import Features, input_normalizer, temporal_differences
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.trajectories import Trajectories, discount_weights

_MAX_SAMPLES = 4096  # Steps that `G` is made of: enough for a metric.
_NEGLIGIBLE = 1e-6  # Of the largest eigenvalue: directions that are left out.


class NaturalStep(eqx.Module):
    """Turns a hypergradient `h` into the step `(G + damping)^-1 h`.

    The damping is relative to the mean eigenvalue of `G`. Directions that do not move
    the policy, as far as the features can tell, are left out.
    """

    features: Features
    damping: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)
    ridge: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)

    def __call__(
        self,
        h: PyTree[Array],
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[PyTree[Array], Float[Array, ""]]:
        """The step to subtract, and how far it moves the policy: `d' G d / 2`."""
        flat, unravel = ravel_pytree(h)
        root = self.root(policy, reward, expert, agent, problem)
        values, vectors = jnp.linalg.eigh(root @ root.T)
        kept = values > _NEGLIGIBLE * values[-1]
        values = jnp.where(kept, values, 1.0)
        damping = self.damping * jnp.mean(values, where=kept)
        along = vectors.T @ (root @ flat)
        along = jnp.where(kept, along / (values + damping.astype(along.dtype)), 0.0)
        step = root.T @ (vectors @ (along / values))
        return unravel(step), 0.5 * jnp.sum(along**2)

    def root(
        self,
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> Float[Array, "features dim"]:
        """`U` with `G = U' U`."""
        features = eqx.tree_at(
            lambda f: f.normalizer, self.features, input_normalizer(agent)
        )
        every = _stride(agent)
        matrix = temporal_differences(features, policy, agent, problem, every)
        right = _feature_gradients(features, reward, agent, problem, every)
        wide = lambda x: x.astype(jnp.float64)
        theta = jnp.linalg.solve(wide(_ridged(matrix, self.ridge)), wide(right))
        spread = _spread(features, policy, expert, problem, _stride(expert))
        lower = jnp.linalg.cholesky(wide(_ridged(spread, self.ridge)))
        return (lower.T @ theta / wide(problem.temperature)).astype(right.dtype)


def _stride(trajectories: Trajectories) -> int:
    """Every how many steps to look, so that there are not too many."""
    return math.ceil(trajectories.mask.size / _MAX_SAMPLES)


def _ridged(matrix: Float[Array, "n n"], ridge: Float[Array, ""]):
    scale = ridge.astype(matrix.dtype) * jnp.trace(matrix) / len(matrix)
    return matrix + scale * jnp.eye(len(matrix), dtype=matrix.dtype)


def _thinned(trajectories: Trajectories, problem: Problem, every: int):
    """Observations, actions and weights of every so-many-th step, in one row each."""
    join = lambda x: x[:, ::every].reshape(-1, *x.shape[2:])
    weights = discount_weights(trajectories, problem.discount)
    return (
        join(trajectories.observations[:, :-1]),
        join(trajectories.actions),
        join(every * weights / trajectories.num_episodes),
    )


def _feature_gradients(
    features: Features,
    reward: Callable,
    trajectories: Trajectories,
    problem: Problem,
    every: int,
) -> Float[Array, "features dim"]:
    """`B = E sum_t gamma^t f_t (grad r_t)'`."""
    params, rest = partition(reward)
    flat, unravel = ravel_pytree(params)
    gradient = jax.grad(lambda flat, s, a: eqx.combine(unravel(flat), rest)(s, a))
    observations, actions, weights = _thinned(trajectories, problem, every)
    jacobian = jax.vmap(gradient, (None, 0, 0))(flat, observations, actions)
    taken = jax.vmap(features)(observations, actions)
    return (weights[:, None] * taken).T @ jacobian


def _spread(
    features: Features,
    policy: AbstractPolicy,
    trajectories: Trajectories,
    problem: Problem,
    every: int,
) -> Float[Array, "features features"]:
    """`C = E sum_t gamma^t Var_a [f]`, over the policy's actions."""
    observations, _, weights = _thinned(trajectories, problem, every)

    def centred(s, weight):
        actions, chances = policy.distribution(s).quadrature()
        values = jax.vmap(lambda action: features(s, action))(actions)
        off_mean = values - (chances @ values)[None, :]
        return jnp.sqrt(weight * chances)[:, None] * off_mean

    rows = jax.vmap(centred)(observations, weights)
    # Where the agent's states are few, the expert's are far out, and squares of their
    # features differ by more than `float32` can tell: it would lose positive values.
    rows = rows.reshape(-1, rows.shape[-1]).astype(jnp.float64)
    return rows.T @ rows
