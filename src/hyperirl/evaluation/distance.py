"""EPIC: how far two rewards are apart, whatever their scale, offset and shaping.

Gleave et al. (2021). Rewards are brought into a canonical form that potential shaping
does not change; the distance is that of Pearson, `sqrt((1 - correlation) / 2)`: 0 for
equivalent rewards, 0.71 for unrelated ones, 1 for opposites.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hyperirl.inner import Reward
from hyperirl.problem import Problem
from hyperirl.spaces import ActionSpace, Discrete
from hyperirl.trajectories import Trajectories


class Coverage(eqx.Module):
    """Where two rewards are compared: transitions, and actions to average over."""

    observations: Float[Array, "samples obs"]
    actions: Int[Array, " samples"] | Float[Array, "samples act"]
    next_observations: Float[Array, "samples obs"]
    other_actions: Int[Array, " choices"] | Float[Array, "choices act"]


def coverage(
    trajectories: Trajectories,
    action_space: ActionSpace,
    *,
    seed: int = 0,
    num_samples: int = 2048,
    num_actions: int = 32,
) -> Coverage:
    """Transitions drawn from trajectories, the same ones for the same seed.

    Args:
        trajectories: Should show all kinds of behavior: a ranking set.
        action_space: All choices are averaged over; of vectors, some of those taken.
        seed: For what is drawn.
        num_samples: How many transitions; all of them, if there are not that many.
        num_actions: How many actions to average over, if they are vectors.
    """
    rng = np.random.default_rng(seed)
    episodes, steps = np.nonzero(np.asarray(trajectories.mask))
    draw = lambda count: rng.permutation(len(episodes))[:count]
    rows = draw(num_samples)
    e, t = episodes[rows], steps[rows]
    if isinstance(action_space, Discrete):
        others = jnp.arange(action_space.num_actions, dtype=jnp.int32)
    else:
        rows = draw(num_actions)
        others = trajectories.actions[episodes[rows], steps[rows]]
    return Coverage(
        trajectories.observations[e, t],
        trajectories.actions[e, t],
        trajectories.observations[e, t + 1],
        others,
    )


def canonical(
    reward: Reward, where: Coverage, discount: Float[Array, ""]
) -> Float[Array, " samples"]:
    """`C(r)(s, a, s') = r(s, a) + E[gamma r(s', A) - r(s, A) - gamma r(S, A)]`.

    `S` is any of the observations, `A` any of the other actions. In `float64`.
    """
    values = jax.vmap(reward)(where.observations, where.actions)
    over_actions = jax.vmap(reward, in_axes=(None, 0))
    mean_over_actions = lambda o: jnp.mean(over_actions(o, where.other_actions))
    now = jax.vmap(mean_over_actions)(where.observations)
    after = jax.vmap(mean_over_actions)(where.next_observations)
    values, now, after, discount = (
        x.astype(jnp.float64) for x in (values, now, after, discount)
    )
    return values + discount * after - now - discount * jnp.mean(now)


@eqx.filter_jit
def epic_distance(
    reward: Reward, other: Reward, where: Coverage, problem: Problem
) -> Float[Array, ""]:
    """Between 0 (equivalent) and 1; NaN if a canonical reward is constant."""
    x, y = (canonical(r, where, problem.discount) for r in (reward, other))
    return pearson_distance(x, y)


def pearson_distance(x: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, ""]:
    """`sqrt((1 - correlation) / 2)`; NaN if either is constant up to rounding."""
    x, y = _standardized(x), _standardized(y)
    # As half the distance of unit vectors: near 0 the formula above loses its digits.
    return jnp.linalg.norm(x - y) / 2


def _standardized(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """Mean zero, norm one."""
    rounding = (
        float(jnp.finfo(jnp.float32).eps) * jnp.max(jnp.abs(x)) * math.sqrt(x.size)
    )
    x = x - jnp.mean(x)
    norm = jnp.linalg.norm(x)
    return jnp.where(norm > rounding, x / norm, jnp.nan)
