"""RankCorr: does the learned reward order trajectories as the true one does?

The trajectories span random to expert behavior: at each step the expert's action is
replaced, with a chance that differs from level to level, by one that ignores the state.
Read the result beside its controls. Where episodes end early the true return is little
more than their length, and a constant reward orders them perfectly.
"""

import functools
import math
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner import Reward
from hyperirl.networks import MLP, AbstractData
from hyperirl.policies import AbstractActor, AbstractPolicy
from hyperirl.programs import compiled
from hyperirl.rewards import AbstractReward, rewards_of
from hyperirl.rollout import rollout
from hyperirl.spaces import Box, Discrete
from hyperirl.trajectories import Trajectories

M = TypeVar("M", bound=eqx.Module)

VERSION = 1  # Of how the set is made: results of other versions do not compare.
_BROAD = 3.0  # Random actions of an unbounded box, against the spread of the expert's.


class RandomPolicy(AbstractActor):
    """Ignores the state: any choice, any point of a box, or a broad normal.

    An unbounded box has no uniform distribution. There it is a normal around the mean
    of the expert's actions, with three times their deviation.
    """

    space: Discrete | Box = eqx.field(static=True)
    center: Float[Array, " act"] | None = None
    scale: Float[Array, " act"] | None = None

    @property
    def needs_scale(self) -> bool:
        """Whether actions have no bounds, and so no scale of their own."""
        space = self.space
        return isinstance(space, Box) and not math.isfinite(space.high - space.low)

    def sample(self, observation: Float[Array, " obs"], *, key: PRNGKeyArray) -> Array:
        if isinstance(self.space, Discrete):
            return jr.randint(key, (), 0, self.space.num_actions, jnp.int32)
        if self.center is None or self.scale is None:
            shape, low, high = (self.space.size,), self.space.low, self.space.high
            return jr.uniform(key, shape, observation.dtype, low, high)
        noise = jr.normal(key, self.center.shape, self.center.dtype)
        return self.center + self.scale * noise


class NoisyPolicy(AbstractActor):
    """Acts like `policy`, or with chance `noise` at random."""

    policy: AbstractPolicy
    random: RandomPolicy
    noise: Float[Array, ""]

    def sample(self, observation: Float[Array, " obs"], *, key: PRNGKeyArray) -> Array:
        chance_key, random_key, policy_key = jr.split(key, 3)
        action = self.policy.sample(observation, key=policy_key)
        at_random = jr.uniform(chance_key, (), jnp.float32) < self.noise
        other = self.random.sample(observation, key=random_key)
        return jnp.where(at_random, other.astype(action.dtype), action)


class RankingSet(eqx.Module):
    """Trajectories from expert to random, and how noisy each is."""

    trajectories: Trajectories  # With their true rewards.
    noise: Float[Array, " episodes"]  # The chance of a random action.
    random: RandomPolicy  # What acts at random.
    version: int = eqx.field(static=True, default=VERSION)


def scaled_to(episodes: Trajectories, random: RandomPolicy) -> RandomPolicy:
    """Broad random actions, of the scale of those in episodes of the expert."""
    taken = np.asarray(episodes.actions)[np.asarray(episodes.mask)]
    center, scale = taken.mean(axis=0), _BROAD * taken.std(axis=0)
    as_array = lambda x: jnp.asarray(x, episodes.actions.dtype)
    return RandomPolicy(random.space, as_array(center), as_array(scale))


def ranking_set(
    environment: AbstractWorld,
    expert: AbstractPolicy,
    *,
    key: PRNGKeyArray,
    levels: int = 11,
    episodes_per_level: int = 8,
) -> RankingSet:
    """Trajectories from the expert (`noise` 0) to random (`noise` 1), in even steps.

    Args:
        environment: Where to act; gives the true rewards.
        expert: What acts when it is not random: the expert, or a clone of it.
        key: The same key, expert and version give the same set.
        levels: How many values of the noise, at least 2.
        episodes_per_level: Episodes of each.
    """
    if levels < 2 or episodes_per_level < 1:
        raise ValueError(
            "A ranking set spans at least 2 levels of noise with at least 1 episode "
            f"each, got {levels} and {episodes_per_level}."
        )
    scale_key, play_key = jr.split(key)
    random = RandomPolicy(environment.action_space)
    if random.needs_scale:
        played = rollout(environment, expert, episodes_per_level, key=scale_key)
        random = scaled_to(played, random)
    noise = jnp.linspace(0.0, 1.0, levels, dtype=jnp.float32)
    keys = jr.split(play_key, levels)
    play = _play_by_the_host if environment.is_stepped else _play_levels
    episodes = play(environment, expert, random, noise, episodes_per_level, keys)
    return RankingSet(episodes, jnp.repeat(noise, episodes_per_level), random)


@functools.partial(compiled, level=1)
def _play_levels(environment, expert, random, noise, num_episodes, keys):
    """All levels at once."""

    def play(noise, key):
        policy = NoisyPolicy(expert, random, noise)
        return rollout(environment, policy, num_episodes, key=key)

    stacked = jax.vmap(play)(noise, keys)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), stacked)


def _play_by_the_host(environment, expert, random, noise, num_episodes, keys):
    """One level after the other."""
    played = [
        rollout(environment, NoisyPolicy(expert, random, chance), num_episodes, key=key)
        for chance, key in zip(noise, keys, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *played)


class RankCorrelation(eqx.Module):
    """Spearman's, of learned and true returns. NaN: one of them is constant."""

    total: Float[Array, ""]  # Of undiscounted returns.
    per_step: Float[Array, ""]  # Of returns divided by the episode's length.


@eqx.filter_jit
def rank_correlation(reward: Reward, trajectories: Trajectories) -> RankCorrelation:
    """How well a reward orders trajectories that know their true rewards."""
    learned, true = undiscounted_returns(reward, trajectories)
    lengths = trajectories.lengths.astype(jnp.float64)
    return RankCorrelation(
        spearman(learned, true), spearman(learned / lengths, true / lengths)
    )


def undiscounted_returns(
    reward: Reward, trajectories: Trajectories
) -> tuple[Float[Array, " episodes"], Float[Array, " episodes"]]:
    """Learned and true; in `float64`, so that rounding hardly makes or breaks ties."""
    if trajectories.rewards is None:
        raise ValueError(
            "These trajectories do not know their true rewards, so there is nothing to "
            "compare with; collect them in an environment."
        )
    wide = lambda rewards: rewards.astype(jnp.float64)
    true = jnp.where(trajectories.mask, wide(trajectories.rewards), 0.0)
    learned = wide(rewards_of(reward, trajectories))
    return jnp.sum(learned, axis=1), jnp.sum(true, axis=1)


def average_ranks(values: Float[Array, " n"]) -> Float[Array, " n"]:
    """From 1 up; equal values share the mean of their ranks."""
    below = jnp.sum(values[None, :] < values[:, None], axis=1, dtype=values.dtype)
    equal = jnp.sum(values[None, :] == values[:, None], axis=1, dtype=values.dtype)
    return below + (equal + 1) / 2


def spearman(x: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, ""]:
    """The correlation of ranks; NaN if all of `x` or all of `y` are equal."""
    x, y = (ranks - jnp.mean(ranks) for ranks in (average_ranks(x), average_ranks(y)))
    return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x**2) * jnp.sum(y**2))


@eqx.filter_jit
def resampled_rank_correlations(
    reward: Reward, trajectories: Trajectories, picks: Int[Array, "draws episodes"]
) -> Float[Array, " draws"]:
    """That of the returns of every row of picked episodes: for a bootstrap."""
    learned, true = undiscounted_returns(reward, trajectories)
    return jax.lax.map(lambda pick: spearman(learned[pick], true[pick]), picks)


def constant_control(trajectories: Trajectories) -> RankCorrelation:
    """What a reward of 1, whatever happens, would score."""
    one = lambda observation, action: jnp.ones((), observation.dtype)
    return rank_correlation(one, trajectories)


def untrained_control(
    reward: AbstractReward,
    trajectories: Trajectories,
    *,
    key: PRNGKeyArray,
    num_rewards: int = 10,
) -> RankCorrelation:
    """The mean of the absolute values for untrained rewards of the same architecture.

    Absolute, for the sign of an untrained reward is a coin's. Undefined ones are left
    out.
    """
    keys = jr.split(key, num_rewards)
    scores = [rank_correlation(untrained(reward, key), trajectories) for key in keys]
    mean = lambda *draws: jnp.nanmean(jnp.abs(jnp.stack(draws)))
    return jax.tree.map(mean, *scores)


def untrained(module: M, key: PRNGKeyArray) -> M:
    """The same architecture with fresh parameters.

    Networks start the way they always do; tables, weights and roots are standard
    normal.
    """
    whole = lambda node: isinstance(node, MLP | AbstractData)
    nodes, structure = jax.tree.flatten(module, is_leaf=whole)
    keys = jr.split(key, len(nodes))
    fresh = [_redraw(node, key) for node, key in zip(nodes, keys, strict=True)]
    return jax.tree.unflatten(structure, fresh)


def _redraw(node: Any, key: PRNGKeyArray) -> Any:
    if isinstance(node, MLP):
        first, last = node.layers[0], node.layers[-1]
        sizes = [layer.weight.shape[1] for layer in node.layers]
        return MLP(
            [*sizes, last.weight.shape[0]],
            key=key,
            output_gain=0.1,
            use_bias=first.bias is not None,
            activation=node.activation,
            dtype=first.weight.dtype,
        )
    if eqx.is_inexact_array(node):
        return jr.normal(key, node.shape, node.dtype)
    return node
