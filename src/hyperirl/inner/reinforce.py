"""REINFORCE: the likelihood-ratio gradient of `L_inner` itself, from whole episodes.

    grad L_inner = -E sum_t gamma^t (G_t - b_t) grad log pi(a_t | s_t)
    G_t = sum_{k >= t} gamma^(k - t) (r_k - alpha log pi(a_k | s_k))

Nothing is dropped and nothing is learned besides the policy, so the estimate has no
bias but one: `G_t` ends where the episode is cut. Its noise is what baselines are for.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import NEVER, Batch, distributions
from hyperirl.inner.advantages import generalized_advantages
from hyperirl.inner.descent import descend, moments
from hyperirl.inner.diagnostics import discounts
from hyperirl.inner.report import report_on, rewards_paid, soft_rewards
from hyperirl.inner.solver import (
    AbstractInnerSolver,
    Reward,
    SolveReport,
    hyperparameter,
    repeat,
)
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.programs import compiled
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories


class AbstractBaseline(eqx.Module):
    """What is subtracted from the rewards to come; must not depend on the action."""

    @abc.abstractmethod
    def __call__(
        self,
        to_go: Float[Array, "steps episodes"],
        alive: Bool[Array, "steps episodes"],
        mean: Float[Array, ""],
    ) -> Float[Array, "steps episodes"]:
        """The baseline of every step, given a running mean of earlier updates."""


class RunningMean(AbstractBaseline):
    """A baseline: one number for all steps, the mean of past updates (the paper's)."""

    def __call__(self, to_go, alive, mean):
        return jnp.broadcast_to(mean, to_go.shape)


class LeaveOneOut(AbstractBaseline):
    """A baseline: for each step, the mean of the other episodes alive then."""

    def __call__(self, to_go, alive, mean):
        count = jnp.sum(alive, axis=1, keepdims=True).astype(to_go.dtype)
        total = jnp.sum(jnp.where(alive, to_go, 0.0), axis=1, keepdims=True)
        others = (total - to_go) / jnp.maximum(count - 1, 1)
        return jnp.where(count > 1, others, mean)


class ReinforceState(eqx.Module):
    """The batch is fresh experience of `policy`; it holds no rewards."""

    policy: AbstractPolicy
    moments: optax.OptState
    batch: Batch
    mean: Float[Array, ""]  # Of the rewards to come.
    count: Int[Array, ""]  # Of updates.
    kl: Float[Array, ""]  # Of the last update.


class Reinforce(AbstractInnerSolver):
    """One step of Adam for every `num_episodes` episodes.

    The paper's: `Reinforce(baseline=RunningMean(), num_episodes=20)`, 500 updates.
    """

    learning_rate: Float[Array, ""] = hyperparameter(3e-3)
    final_rate: Float[Array, ""] = hyperparameter(0.1)
    baseline: AbstractBaseline = LeaveOneOut()
    num_episodes: int = eqx.field(static=True, default=64)
    horizon: int = eqx.field(static=True, default=500)  # Or the environment's own.

    @property
    def steps_per_update(self) -> int:
        """At most: episodes that terminate are shorter."""
        return self.num_episodes * self.horizon

    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> ReinforceState:
        batch = self._play(environment, policy, key)
        zero = jnp.zeros((), jnp.float32)
        count = jnp.zeros((), jnp.int32)
        return ReinforceState(policy, moments(policy), batch, zero, count, zero)

    def _play(self, environment, policy, key: PRNGKeyArray) -> Batch:
        horizon = min(self.horizon, environment.horizon)
        episodes = rollout(
            environment,
            policy,
            self.num_episodes,
            key=key,
            horizon=horizon,
            record_rewards=environment.is_stepped,
        )
        return as_batch(episodes)

    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: ReinforceState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[ReinforceState, SolveReport]:
        def body(i: Int[Array, ""], carry):
            state, steps = carry
            share, play_key = self._turn(i, num_updates, key=key)
            state = self.update(reward, state, problem, share)
            batch = self._play(environment, state.policy, play_key)
            steps = _counted(steps, batch)
            return eqx.tree_at(lambda s: s.batch, state, batch), steps

        start = state, jnp.zeros((), jnp.int32)
        state, steps = repeat(num_updates, body, start)
        return state, self._report(environment, reward, state, problem, steps)

    @compiled
    def _turn(self, i: Int[Array, ""], num_updates: Int[Array, ""], *, key):
        """The share of the full rate that an update has, and the key after it."""
        total = jnp.maximum(num_updates, 1).astype(jnp.float32)
        share = 1 - (1 - self.final_rate) * i.astype(jnp.float32) * (1 / total)
        return share, jr.fold_in(key, i)

    @compiled
    def _report(self, environment, reward, state: ReinforceState, problem, steps):
        values, advantages = self.advantages(reward, state, problem)
        return report_on(
            environment,
            reward,
            state.policy,
            state.batch,
            problem,
            seen=values + advantages,
            advantages=advantages,
            kl=state.kl,
            steps=steps,
        )

    @compiled
    def update(
        self,
        reward: Reward,
        state: ReinforceState,
        problem: Problem,
        share: Float[Array, ""],
    ) -> ReinforceState:
        """One step down the gradient, at `share` of the full learning rate."""
        batch = state.batch
        baseline, advantages = self.advantages(reward, state, problem)
        coefficients = discounts(batch, problem) * advantages / batch.num_episodes

        def loss(policy: AbstractPolicy) -> Float[Array, ""]:
            log_prob = jax.vmap(jax.vmap(policy.log_prob))
            return -jnp.sum(coefficients * log_prob(batch.observations, batch.actions))

        rate = share * self.learning_rate
        policy, moments = descend(loss, state.policy, state.moments, rate)
        before = distributions(state.policy, batch.observations)
        after = distributions(policy, batch.observations)
        kl = jax.vmap(jax.vmap(lambda p, q: p.kl(q)))(after, before)
        seen = jnp.sum((baseline + advantages) * batch.alive) / jnp.sum(batch.alive)
        count = state.count + 1
        rate = jnp.maximum(0.05, 1 / count.astype(jnp.float32))
        return ReinforceState(
            policy,
            moments,
            batch,
            state.mean + rate * (seen - state.mean),
            count,
            jnp.sum(kl * batch.alive) / jnp.sum(batch.alive),
        )

    def advantages(
        self, reward: Reward, state: ReinforceState, problem: Problem
    ) -> tuple[Float[Array, "steps episodes"], Float[Array, "steps episodes"]]:
        """The baseline `b` and `G - b`, both 0 in the padding."""
        batch = state.batch
        paid = rewards_paid(reward, batch)
        rewards = soft_rewards(paid, state.policy, batch, problem)
        alive = batch.times != NEVER
        to_go = rewards_to_go(jnp.where(alive, rewards, 0.0), problem)
        baseline = self.baseline(to_go, alive, state.mean)
        keep = lambda x: jnp.where(alive, x, 0.0)
        return keep(baseline), keep(to_go - baseline)


def rewards_to_go(
    rewards: Float[Array, "steps episodes"], problem: Problem
) -> Float[Array, "steps episodes"]:
    """`G_t = sum_{k >= t} gamma^(k - t) r_k`: advantages of a critic that knows 0."""
    never = jnp.zeros(rewards.shape, bool)
    return generalized_advantages(rewards, never, decay=problem.discount)


@compiled
def _counted(steps: Int[Array, ""], batch: Batch) -> Int[Array, ""]:
    return steps + jnp.sum(batch.times != NEVER, dtype=jnp.int32)


@compiled
def as_batch(episodes: Trajectories) -> Batch:
    """Whole episodes side by side, padding and all."""
    mask = jnp.swapaxes(episodes.mask, 0, 1)
    steps = jnp.arange(episodes.num_steps, dtype=jnp.int32)
    last = jnp.concatenate([~mask[1:], jnp.ones_like(mask[:1])]) & mask
    observations = jnp.swapaxes(episodes.observations, 0, 1)
    rewards = episodes.rewards
    return Batch(
        observations=observations[:-1],
        actions=jnp.swapaxes(episodes.actions, 0, 1),
        next_observations=observations[1:],
        terminated=last & episodes.terminated[None, :],
        truncated=last & ~episodes.terminated[None, :],
        times=jnp.where(mask, steps[:, None], NEVER),
        rewards=None if rewards is None else jnp.swapaxes(rewards, 0, 1),
    )
