"""Behavioral cloning: the most likely policy, without any reward.

The reference for likelihood. A reward that is worth its name explains demonstrations
almost as well as the clone does, and unlike the clone it can be trained on again.
"""

import functools
import math
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, log_probs
from hyperirl.programs import compiled
from hyperirl.trajectories import Trajectories, steps_taken

P = TypeVar("P", bound=AbstractPolicy)

_MAX_CHECKS = 40  # How often the held-out likelihood is looked at.


class History(eqx.Module):
    """How cloning went, at each look at the held-out episodes.

    Both are `-sum_t log pi(a_t | s_t)` of a mean episode, undiscounted.
    """

    steps: Int[Array, " checks"]
    train_nll: Float[Array, " checks"]  # Of the minibatches since the last look.
    valid_nll: Float[Array, " checks"]


def mean_nll(policy: AbstractPolicy, trajectories: Trajectories) -> Float[Array, ""]:
    """`-sum_t log pi(a_t | s_t)`, undiscounted, averaged over the episodes."""
    return -jnp.mean(jnp.sum(log_probs(policy, trajectories), axis=1))


def clone(
    policy: P,
    train: Trajectories,
    valid: Trajectories,
    *,
    key: PRNGKeyArray,
    num_steps: int = 2000,
    learning_rate: float = 3e-3,
    batch_size: int = 256,
) -> tuple[P, History]:
    """Maximizes the likelihood of `train`; returns the best on `valid`.

    Adam on random steps of the episodes, at a rate that falls to zero, in one compiled
    call: other weights, keys and rates, and other episodes of the same padded sizes,
    compile nothing again.

    Args:
        policy: Where to start. Returned as it is if nothing does better.
        train: The episodes to imitate.
        valid: Held-out episodes that decide which policy is kept.
        key: Picks the steps of the minibatches.
        num_steps: Of Adam; rounded up to a multiple of the number of looks at `valid`.
        learning_rate: Of Adam, at the start.
        batch_size: Steps of episodes in a minibatch.
    """
    if num_steps < 1 or batch_size < 1:
        raise ValueError(
            "Cloning takes at least one step on at least one sample, got "
            f"num_steps={num_steps} and batch_size={batch_size}."
        )
    if not (learning_rate > 0 and math.isfinite(learning_rate)):
        raise ValueError(f"`learning_rate` must be positive, got {learning_rate}.")
    rate = jnp.asarray(learning_rate, jnp.float32)
    return _clone(policy, train, valid, key, num_steps, rate, batch_size)


class _Learner(eqx.Module):
    """What a step of Adam changes."""

    params: AbstractPolicy
    moments: optax.OptState


@functools.partial(compiled, level=1)
def _clone(policy, train, valid, key, num_steps, rate, batch_size):
    params, rest = partition(policy)
    adam = optax.scale_by_adam()
    num_checks = min(_MAX_CHECKS, num_steps)
    steps_per_check = -(-num_steps // num_checks)
    total = num_checks * steps_per_check
    taken = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps_taken(train))
    mask = train.mask.reshape(-1)
    # The places of the steps taken come first, so that a draw below their number is
    # one of them.
    places = jnp.argsort(~mask, stable=True).astype(jnp.int32)
    num_taken = jnp.sum(mask, dtype=jnp.int32)
    mean_length = jnp.mean(train.lengths.astype(jnp.float32))

    def loss(params, rows):
        policy = eqx.combine(params, rest)
        observations, actions = jax.tree.map(lambda x: x[rows], taken)
        return -jnp.mean(jax.vmap(policy.log_prob)(observations, actions))

    def step(learner: _Learner, i: Int[Array, ""]):
        draws = jr.randint(jr.fold_in(key, i), (batch_size,), 0, num_taken, jnp.int32)
        value, grads = jax.value_and_grad(loss)(learner.params, places[draws])
        with jax.numpy_dtype_promotion("standard"):  # Adam mixes float and int.
            updates, moments = adam.update(grads, learner.moments)
        done = i.astype(jnp.float32) / total
        now = rate * 0.5 * (1 + jnp.cos(math.pi * done))
        descend = lambda p, u: p - now.astype(p.dtype) * u
        return _Learner(jax.tree.map(descend, learner.params, updates), moments), value

    def check(carry, start: Int[Array, ""]):
        learner, best, best_nll = carry
        numbers = start + jnp.arange(steps_per_check, dtype=jnp.int32)
        learner, values = jax.lax.scan(step, learner, numbers)
        nll = mean_nll(eqx.combine(learner.params, rest), valid)
        better = nll < best_nll  # Never, if it is NaN.
        keep = lambda new, old: jnp.where(better, new, old)
        best = jax.tree.map(keep, learner.params, best)
        record = numbers[-1] + 1, mean_length * jnp.mean(values), nll
        return (learner, best, keep(nll, best_nll)), record

    first_nll = mean_nll(policy, valid)
    first_nll = jnp.where(jnp.isnan(first_nll), jnp.inf, first_nll)
    init = _Learner(params, adam.init(params)), params, first_nll
    starts = steps_per_check * jnp.arange(num_checks, dtype=jnp.int32)
    (_, best, _), records = jax.lax.scan(check, init, starts)
    return eqx.combine(best, rest), History(*records)
