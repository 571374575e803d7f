"""The rows of the Fisher matrix: weighted scores of a policy along trajectories.

`alpha F = X^T X`, where X has a row `sqrt(alpha gamma^t / N) grad log pi(a_t | s_t)`
for each of the steps of N trajectories; or, with the expectation over actions taken in
closed form, a few rows a step whose squares sum to that expectation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl.curvature import AbstractRows, AutodiffRows, Factor, FactoredRows
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, Policy, log_probs
from hyperirl.problem import Problem
from hyperirl.trajectories import Trajectories, discount_weights


def score_rows(
    policy: AbstractPolicy,
    trajectories: Trajectories,
    problem: Problem,
    *,
    expected: bool = False,
) -> AbstractRows:
    """X with `X^T X = alpha F`, never held whole.

    A `Policy` gives its rows in factors, layer by layer; any other policy gives them
    by forward and reverse differentiation. Steps after the end of an episode have
    weight 0.

    Args:
        policy: Whose scores.
        trajectories: Its own trajectories, for F to be the Fisher matrix.
        problem: Temperature and discount.
        expected: Whether the expectation over actions is taken in closed form.
    """
    weights = row_weights(trajectories, problem)
    if isinstance(policy, Policy):
        return _factored(policy, trajectories, weights, expected)
    if expected:
        raise ValueError(
            f"The expected Fisher matrix needs the head of a `Policy`, and "
            f"{type(policy).__name__} is another class. Use the sampled one "
            "(`expected=False`)."
        )
    parameters, rest = partition(policy)
    flat, unravel = ravel_pytree(parameters)

    def of_steps(flat, step):
        policy = eqx.combine(unravel(flat), rest)
        return jax.vmap(policy.log_prob)(*step)

    return AutodiffRows(of_steps, flat, weights.reshape(-1), _steps(trajectories))


def episode_rows(
    policy: AbstractPolicy, trajectories: Trajectories, problem: Problem
) -> Float[Array, "episodes dim"]:
    """One row an episode, `sqrt(alpha / N) sum_t gamma^(t/2) grad log pi(a_t | s_t)`.

    A score has mean zero given what came before, so products of two different steps
    vanish in the mean: the rows' squares have the expectation `alpha F`, as those of
    `score_rows` do, with more noise and far fewer of them.
    """
    parameters, rest = partition(policy)
    flat, unravel = ravel_pytree(parameters)
    weights = row_weights(trajectories, problem)

    def total(flat, episode, weights):
        one = jax.tree.map(lambda x: x[None], episode)
        return weights @ log_probs(eqx.combine(unravel(flat), rest), one)[0]

    return jax.vmap(jax.grad(total), (None, 0, 0))(flat, trajectories, weights)


def row_weights(
    trajectories: Trajectories, problem: Problem
) -> Float[Array, "episodes steps"]:
    """`sqrt(alpha gamma^t / N)`, and 0 in the padding."""
    weights = discount_weights(trajectories, problem.discount)
    scale = problem.temperature / trajectories.num_episodes
    return jnp.sqrt(scale.astype(weights.dtype) * weights)


def _steps(trajectories: Trajectories) -> tuple[Array, Array]:
    """Observations and actions, one a row."""
    flatten = lambda x: x.reshape(-1, *x.shape[2:])
    return flatten(trajectories.observations[:, :-1]), flatten(trajectories.actions)


def _factored(policy: Policy, trajectories, weights, expected: bool) -> FactoredRows:
    def sampled_deltas(observation, action):
        log_prob = lambda z: policy.head.distribution(z).log_prob(action)
        return jax.grad(log_prob)(policy.outputs(observation))[None, :]

    def expected_deltas(observation, action):
        return policy.head.fisher_factor(policy.outputs(observation)).T

    def blocks(observation, action):
        deltas = (expected_deltas if expected else sampled_deltas)(observation, action)
        return jax.vmap(lambda delta: policy.score_factors(observation, delta))(deltas)

    pairs = jax.vmap(blocks)(*_steps(trajectories))
    flatten = lambda x: x.reshape(-1, x.shape[-1])
    biases = [layer.bias is not None for layer in policy.network.layers]
    layers, free = pairs[: len(biases)], pairs[len(biases) :]
    factors = [
        Factor(flatten(activations), flatten(deltas), bias)
        for (activations, deltas), bias in zip(layers, biases, strict=True)
    ]
    factors += [Factor(None, flatten(deltas)) for _, deltas in free]
    rows_per_step = pairs[0][1].shape[1]
    return FactoredRows(factors, jnp.repeat(weights.reshape(-1), rows_per_step))
