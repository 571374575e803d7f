"""Proximal policy optimization of the soft return.

The entropy is inside the return: with the soft reward `r - alpha log pi(a | s)` the
advantage is `A = Q - alpha log pi - V`, and it vanishes at the optimum, action by
action. So does its noise, and the policy comes to rest there. For states held fixed,

    L_inner(new) - L_inner(old) = -E_old[ratio * A] + alpha E KL(new, old)

holds exactly, with `ratio = new / old`: the right side is the loss of an update, with
the ratio clipped. The KL term is no regularizer but the rest of the entropy.

The states are those the policy visits, each counted once: the weight `gamma^t` of
`L_inner` is dropped, as everywhere in practice. Where the policy can represent the
soft-optimal one the minimum is the same; elsewhere it is weighted by other states. The
report has the weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractEnvironment
from hyperirl.inner.acting import Actors, Batch, act, distributions, start
from hyperirl.inner.advantages import generalized_advantages
from hyperirl.inner.critic import Critic, critic
from hyperirl.inner.descent import descend, moments
from hyperirl.inner.diagnostics import estimated_gap, inner_gradient
from hyperirl.inner.solver import (
    AbstractInnerSolver,
    Report,
    Reward,
    hyperparameter,
    repeat,
)
from hyperirl.policies import AbstractDistribution, AbstractPolicy
from hyperirl.problem import Problem


class PPOState(eqx.Module):
    """Everything that carries over from one solve to the next.

    The batch is fresh experience of `policy`. It holds no rewards, so the next solve
    starts from it whatever reward it is given.
    """

    policy: AbstractPolicy
    critic: Critic
    policy_moments: optax.OptState
    critic_moments: optax.OptState
    actors: Actors
    batch: Batch
    kl: Float[Array, ""]  # Of the last update.


class Samples(eqx.Module):
    """What an update learns from: one row a step."""

    observations: Float[Array, "batch obs"]
    actions: Int[Array, " batch"] | Float[Array, "batch act"]
    behavior: AbstractDistribution  # That drew the actions.
    advantages: Float[Array, " batch"]
    targets: Float[Array, " batch"]  # For the critic.


class PPO(AbstractInnerSolver):
    """Clipped policy improvement from batches of `num_envs * num_steps` steps.

    The learning rates fall linearly during a solve, to the share `final_rate` of
    themselves: that is what lets the policy settle.
    """

    learning_rate: Float[Array, ""] = hyperparameter(5e-4)
    critic_rate: Float[Array, ""] = hyperparameter(1e-3)
    final_rate: Float[Array, ""] = hyperparameter(0.1)
    clip: Float[Array, ""] = hyperparameter(0.2)
    trace: Float[Array, ""] = hyperparameter(0.95)
    num_envs: int = eqx.field(static=True, default=64)
    num_steps: int = eqx.field(static=True, default=128)
    num_epochs: int = eqx.field(static=True, default=4)
    num_minibatches: int = eqx.field(static=True, default=4)
    critic_hidden: tuple[int, ...] = eqx.field(static=True, default=(64, 64))

    def __check_init__(self):
        if self.steps_per_update % self.num_minibatches:
            raise ValueError(
                f"A batch of {self.num_envs} x {self.num_steps} steps cannot be dealt "
                f"into {self.num_minibatches} equal minibatches. Change one of them."
            )

    @property
    def steps_per_update(self) -> int:
        return self.num_envs * self.num_steps

    def init(
        self,
        environment: AbstractEnvironment,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> PPOState:
        start_key, critic_key, act_key = jr.split(key, 3)
        value = critic(environment.observation_size, self.critic_hidden, key=critic_key)
        actors = start(environment, self.num_envs, key=start_key)
        actors, batch = _act(environment, policy, actors, self.num_steps, act_key)
        return PPOState(
            policy,
            value,
            moments(policy),
            moments(value),
            actors,
            batch,
            jnp.zeros((), jnp.float32),
        )

    def run(
        self,
        environment: AbstractEnvironment,
        reward: Reward,
        state: PPOState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[PPOState, Report]:
        total = jnp.maximum(num_updates, 1).astype(jnp.float32)

        def body(i: Int[Array, ""], state: PPOState) -> PPOState:
            update_key, act_key = jr.split(jr.fold_in(key, i))
            share = 1 - (1 - self.final_rate) * i.astype(jnp.float32) / total
            state = self.update(reward, state, problem, share, key=update_key)
            actors, batch = act(
                environment, state.policy, state.actors, self.num_steps, key=act_key
            )
            where = lambda s: (s.actors, s.batch)
            return eqx.tree_at(where, state, (actors, batch))

        state = repeat(num_updates, body, state)
        return state, self.report(reward, state, problem, num_updates)

    def update(
        self,
        reward: Reward,
        state: PPOState,
        problem: Problem,
        share: Float[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> PPOState:
        """Improves policy and critic on `state.batch`, at `share` of the full rates.

        No environment is needed: acting is apart.
        """
        advantages, targets = self.advantages(reward, state, problem)
        observations = state.batch.observations
        flat = lambda x: x.reshape(-1, *x.shape[2:])
        samples = jax.tree.map(
            flat,
            (
                observations,
                state.batch.actions,
                distributions(state.policy, observations),
                # In units of the temperature or of their spread, whichever is larger.
                advantages,
                targets,
            ),
        )
        samples = Samples(*samples)
        value = state.critic.track(samples.observations, samples.targets)
        scale = jnp.maximum(jnp.std(advantages), problem.temperature)

        def minibatch(learners, part: Samples):
            policy, policy_moments, value, value_moments = learners
            policy, policy_moments = descend(
                lambda policy: self.policy_loss(policy, part, problem) / scale,
                policy,
                policy_moments,
                share * self.learning_rate,
            )
            value, value_moments = descend(
                lambda value: critic_loss(value, part.observations, part.targets),
                value,
                value_moments,
                share * self.critic_rate,
            )
            return policy, policy_moments, value, value_moments

        learners = state.policy, state.policy_moments, value, state.critic_moments
        arrays, rest = eqx.partition(learners, eqx.is_array)

        def step(arrays, rows):
            part = jax.tree.map(lambda x: x[rows], samples)
            learners = minibatch(eqx.combine(arrays, rest), part)
            return eqx.filter(learners, eqx.is_array), None

        rows = self._minibatches(key)
        learners = eqx.combine(jax.lax.scan(step, arrays, rows)[0], rest)
        policy, policy_moments, value, critic_moments = learners
        after = distributions(policy, samples.observations)
        kl = jnp.mean(jax.vmap(lambda p, q: p.kl(q))(after, samples.behavior))
        return PPOState(
            policy,
            value,
            policy_moments,
            critic_moments,
            state.actors,
            state.batch,
            kl.astype(jnp.float32),
        )

    def _minibatches(self, key: PRNGKeyArray) -> Int[Array, "minibatches rows"]:
        """Which samples go into which step; every epoch deals all of them anew."""
        shape = self.num_epochs, self.steps_per_update
        order = jnp.argsort(jr.bits(key, shape, jnp.uint32), axis=1).astype(jnp.int32)
        return order.reshape(self.num_epochs * self.num_minibatches, -1)

    def policy_loss(
        self, policy: AbstractPolicy, samples: Samples, problem: Problem
    ) -> Float[Array, ""]:
        """`-min(ratio A, clip(ratio) A) + alpha KL(new, old)`, averaged."""
        new = distributions(policy, samples.observations)
        log_prob = jax.vmap(lambda p, action: p.log_prob(action))
        log_ratio = log_prob(new, samples.actions) - log_prob(
            samples.behavior, samples.actions
        )
        ratio = jnp.exp(log_ratio)
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        gain = jnp.minimum(ratio * samples.advantages, clipped * samples.advantages)
        kl = jax.vmap(lambda p, q: p.kl(q))(new, samples.behavior)
        return jnp.mean(problem.temperature * kl - gain)

    def advantages(
        self, reward: Reward, state: PPOState, problem: Problem
    ) -> tuple[Float[Array, "steps envs"], Float[Array, "steps envs"]]:
        """Soft advantages of `state.batch`, and the values the critic should have."""
        batch = state.batch
        values = jax.vmap(jax.vmap(state.critic))
        now = values(batch.observations)
        advantages = generalized_advantages(
            soft_rewards(reward, state.policy, batch, problem),
            now,
            values(batch.next_observations),
            batch.terminated,
            batch.truncated,
            discount=problem.discount,
            trace=self.trace,
        )
        return advantages, advantages + now

    def report(
        self,
        reward: Reward,
        state: PPOState,
        problem: Problem,
        num_updates: Int[Array, ""],
    ) -> Report:
        """From `state.batch`, which no update has seen yet."""
        batch = state.batch
        advantages, targets = self.advantages(reward, state, problem)
        gradient = inner_gradient(state.policy, batch, advantages, problem)
        gap, gap_error = estimated_gap(state.policy, batch, gradient, problem)
        entropy = jax.vmap(jax.vmap(state.policy.entropy))(batch.observations)
        first = (batch.times == 0).astype(jnp.float32)
        return Report(
            gradient_norm=gradient.norm,
            gradient_norm_error=gradient.norm_error,
            gradient_norm_squared=gradient.norm_squared,
            kl=state.kl,
            entropy=jnp.mean(entropy),
            soft_return=jnp.sum(first * targets) / jnp.sum(first),
            gap=gap,
            gap_error=gap_error,
            steps=num_updates * self.steps_per_update,
        )


def soft_rewards(
    reward: Reward, policy: AbstractPolicy, batch: Batch, problem: Problem
) -> Float[Array, "steps envs"]:
    """`r(s, a) - alpha log pi(a | s)` of every step, for the policy that took it."""
    per_step = lambda f: jax.vmap(jax.vmap(f))(batch.observations, batch.actions)
    rewards = per_step(reward).astype(jnp.float32)
    return rewards - problem.temperature * per_step(policy.log_prob)


def critic_loss(
    value: Critic,
    inputs: Float[Array, "batch size"],
    targets: Float[Array, " batch"],
) -> Float[Array, ""]:
    """Mean squared error in units of the targets' spread."""
    units = (targets - value.targets.mean) / value.targets.scale
    return 0.5 * jnp.mean((jax.vmap(value.normalized)(inputs) - units) ** 2)


@eqx.filter_jit
def _act(environment, policy, actors: Any, num_steps: int, key: PRNGKeyArray):
    return act(environment, policy, actors, num_steps, key=key)
