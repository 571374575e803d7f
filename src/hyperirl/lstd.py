"""Least-squares temporal differences: what comes after a state and an action.

A critic that is linear in fixed features needs no training, only one small linear
system. The hypergradient solves the transposed system, for its adjoint.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from hyperirl.networks import Normalizer, masked_normalizer
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.spaces import ActionSpace, Discrete
from hyperirl.trajectories import Trajectories, discount_weights


class Features(eqx.Module):
    """`f(s, a)`: constant, linear and quadratic terms, and random tanh units.

    Of the observation, separately for each action, where actions are discrete; of
    observation and action together where they are vectors.
    """

    normalizer: Normalizer
    weight: Float[Array, "units inputs"]
    bias: Float[Array, " units"]
    num_actions: int | None = eqx.field(static=True)  # None: actions are vectors.
    polynomial: int = eqx.field(static=True)  # The degree: 1 or 2.

    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, " features"]:
        """The features of one observation and one action."""
        if self.num_actions is None:
            return self._terms(jnp.concatenate([observation, action]))
        dtype = observation.dtype
        chosen = jax.nn.one_hot(action, self.num_actions, dtype=dtype)
        return jnp.outer(chosen, self._terms(observation)).reshape(-1)

    def mean(
        self, observation: Float[Array, " obs"], policy: AbstractPolicy
    ) -> Float[Array, " features"]:
        """`E_a f(s, a)` over the policy's actions, differentiable in the policy."""
        actions, weights = policy.distribution(observation).quadrature()
        if self.num_actions is not None:  # The terms are the same for all actions.
            return jnp.outer(weights, self._terms(observation)).reshape(-1)
        return weights @ jax.vmap(lambda action: self(observation, action))(actions)

    def _terms(self, x: Float[Array, " inputs"]) -> Float[Array, " terms"]:
        x = self.normalizer(x)
        terms = [jnp.ones(1, x.dtype), x]
        if self.polynomial == 2:
            terms.append(jnp.outer(x, x)[jnp.tril_indices(x.size)])
        terms.append(jnp.tanh(self.weight @ x + self.bias))
        return jnp.concatenate(terms)


def random_features(
    normalizer: Normalizer,
    action_space: ActionSpace,
    *,
    key: PRNGKeyArray,
    num_units: int = 96,
    polynomial: int = 2,
    dtype: DTypeLike = jnp.float32,
) -> Features:
    """Features on normalized inputs, with `num_units` random tanh units."""
    num_actions = None
    if isinstance(action_space, Discrete):
        num_actions = action_space.num_actions
    weight_key, bias_key = jr.split(key)
    size = normalizer.mean.size
    weight = jr.normal(weight_key, (num_units, size), dtype)
    bias = jr.normal(bias_key, (num_units,), dtype)
    return Features(normalizer, weight, bias, num_actions, polynomial)


def input_normalizer(trajectories: Trajectories) -> Normalizer:
    """Mean and scale of what `Features` reads, over the steps taken."""
    if trajectories.discrete:
        return masked_normalizer(trajectories.observations[:, :-1], trajectories.mask)
    inputs = [trajectories.observations[:, :-1], trajectories.actions]
    return masked_normalizer(jnp.concatenate(inputs, axis=-1), trajectories.mask)


@eqx.filter_jit  # Traced once for the estimate and its check.
def temporal_differences(
    features: Features,
    policy: AbstractPolicy,
    trajectories: Trajectories,
    problem: Problem,
    every: int = 1,
) -> Float[Array, "features features"]:
    """`A = E sum_t gamma^t f_t (f_t - gamma fbar_{t+1})'`, from the policy's own steps.

    `fbar` is the mean of the features over the policy's actions, and 0 after a
    termination; the last step of a truncated episode has a next observation like any
    other. Only one of `every` steps is used.
    """
    observations = trajectories.observations
    thin = lambda x: x[:, ::every]
    weights = thin(discount_weights(trajectories, problem.discount))
    weights = every * weights / trajectories.num_episodes
    taken = jax.vmap(jax.vmap(features))(
        thin(observations[:, :-1]), thin(trajectories.actions)
    )
    mean = jax.vmap(jax.vmap(lambda s: features.mean(s, policy)))
    more = thin(goes_on(trajectories))
    following = more[:, :, None] * mean(thin(observations[:, 1:]))
    discount = problem.discount.astype(taken.dtype)
    difference = taken - discount * following
    taken = weights[:, :, None] * taken
    flat = lambda x: x.reshape(-1, x.shape[-1])
    return flat(taken).T @ flat(difference)


def adjoint_weights(
    matrix: Float[Array, "features features"],
    source: Float[Array, " features"],
    ridge: float | Float[Array, ""],
) -> Float[Array, " features"]:
    """`y` with `A' y = source`, in `float64`, with `ridge * tr(A) / p` on the diagonal.

    Features that are always zero, or sums of others, make `A` singular; the ridge
    leaves them out.
    """
    wide = matrix.astype(jnp.float64)
    size = wide.shape[0]
    scale = jnp.asarray(ridge, jnp.float64) * jnp.trace(wide) / size
    damped = wide + scale * jnp.eye(size, dtype=jnp.float64)
    y = jnp.linalg.solve(damped.T, source.astype(jnp.float64))
    return y.astype(source.dtype)


def goes_on(trajectories: Trajectories) -> Float[Array, "episodes steps"]:
    """1 where something comes after the step, 0 where it terminated the task."""
    steps = jnp.arange(trajectories.num_steps, dtype=jnp.int32)[None, :]
    last = steps == trajectories.lengths[:, None] - 1
    ends = last & trajectories.terminated[:, None]
    return (~ends).astype(trajectories.observations.dtype)
