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

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Actors, Batch, act, distributions, start
from hyperirl.inner.critic import Critic, critic, critic_loss
from hyperirl.inner.descent import descend, descend_with, moments
from hyperirl.inner.report import SoftValues, report_on, rewards_paid, soft_values
from hyperirl.inner.solver import (
    AbstractInnerSolver,
    Reward,
    SolveReport,
    hyperparameter,
    repeat,
)
from hyperirl.policies import AbstractDistribution, AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.programs import compiled
from hyperirl.spaces import Discrete

ROBOTS: dict[str, Any] = dict(
    learning_rate=1e-3,
    critic_rate=1e-3,
    num_envs=16,
    num_epochs=5,
    num_minibatches=32,
)
"""Settings that train a robot from scratch. Chosen on Hopper's true reward."""


class PPOState(eqx.Module):
    """Everything that carries over from one solve to the next.

    The batch is fresh experience of `policy`. It holds no rewards, so the next solve
    starts from it whatever reward it is given.
    """

    policy: AbstractPolicy
    critic: Critic
    moments: optax.OptState  # Of policy and critic.
    actors: Actors
    batch: Batch
    kl: Float[Array, ""]  # Of the last update.


class Samples(eqx.Module):
    """What an update learns from: one row a step."""

    observations: Float[Array, "batch obs"]
    actions: Int[Array, " batch"] | Float[Array, "batch act"]
    behavior: AbstractDistribution  # That drew the actions.
    advantages: Float[Array, " batch"]
    values: Float[Array, " batch"]  # That were seen, for the critic.


class PPO(AbstractInnerSolver):
    """Clipped policy improvement from batches of `num_envs * num_steps` steps.

    The learning rates fall linearly during a solve, to the share `final_rate` of
    themselves: that is what lets the policy settle. An update ends early when it has
    moved the policy by `max_kl` nats a step.
    """

    learning_rate: Float[Array, ""] = hyperparameter(2e-3)
    critic_rate: Float[Array, ""] = hyperparameter(1e-3)
    final_rate: Float[Array, ""] = hyperparameter(0.1)
    clip: Float[Array, ""] = hyperparameter(0.2)
    max_kl: Float[Array, ""] = hyperparameter(0.05)
    trace: Float[Array, ""] = hyperparameter(0.95)
    num_envs: int = eqx.field(static=True, default=64)
    num_steps: int = eqx.field(static=True, default=128)
    num_epochs: int = eqx.field(static=True, default=4)
    num_minibatches: int = eqx.field(static=True, default=4)
    num_fits: int = eqx.field(static=True, default=2)
    critic_hidden: tuple[int, ...] = eqx.field(static=True, default=(32, 32))

    def __check_init__(self):
        if self.steps_per_update % self.num_minibatches:
            raise ValueError(
                f"A batch of {self.num_envs} x {self.num_steps} steps cannot be dealt "
                f"into {self.num_minibatches} equal minibatches. Change one of them."
            )

    @property
    def steps_per_update(self) -> int:
        return self.num_envs * self.num_steps

    def fitting(self, environment: AbstractWorld) -> "PPO":
        """With batches as large, or a little less where they cannot be dealt evenly."""
        num_envs = environment.num_envs
        if num_envs is None:
            return self
        whole = self.num_minibatches // math.gcd(num_envs, self.num_minibatches)
        num_steps = whole * max(1, self.steps_per_update // (num_envs * whole))
        return dataclasses.replace(self, num_envs=num_envs, num_steps=num_steps)

    @property
    def in_parts(self) -> bool:
        return True

    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> PPOState:
        start_key, act_key, *made = self._first(
            environment.observation_size, policy, key=key
        )
        value, memory, kl = made
        actors = start(environment, self.num_envs, key=start_key)
        actors, batch = act(environment, policy, actors, self.num_steps, key=act_key)
        return PPOState(policy, value, memory, actors, batch, kl)

    @compiled
    def _first(self, size: int, policy: AbstractPolicy, *, key: PRNGKeyArray):
        """What of the first state needs no environment, and the keys of the rest."""
        start_key, critic_key, act_key = jr.split(key, 3)
        value = critic(size, self.critic_hidden, key=critic_key)
        memory = moments(policy), moments(value)
        return start_key, act_key, value, memory, jnp.zeros((), jnp.float32)

    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: PPOState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[PPOState, SolveReport]:
        state = self.improve(environment, reward, state, problem, num_updates, key=key)
        return state, self._report(environment, reward, state, problem, num_updates)

    def improve(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: PPOState,
        problem: Problem,
        num_updates: int | Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> PPOState:
        """The updates of a solve, without the report, which takes time of its own."""
        num_updates = jnp.asarray(num_updates, jnp.int32)

        def body(i: Int[Array, ""], state: PPOState) -> PPOState:
            share, update_key, act_key = self._turn(i, num_updates, key=key)
            state = self.update(reward, state, problem, share, key=update_key)
            actors, batch = act(
                environment, state.policy, state.actors, self.num_steps, key=act_key
            )
            where = lambda s: (s.actors, s.batch)
            return eqx.tree_at(where, state, (actors, batch))

        return repeat(num_updates, body, state)

    @compiled
    def _turn(self, i: Int[Array, ""], num_updates: Int[Array, ""], *, key):
        """The share of the full rates that an update has, and its keys."""
        update_key, act_key = jr.split(jr.fold_in(key, i))
        total = jnp.maximum(num_updates, 1).astype(jnp.float32)
        share = 1 - (1 - self.final_rate) * i.astype(jnp.float32) * (1 / total)
        return share, update_key, act_key

    def _report(self, environment, reward, state: PPOState, problem, num_updates):
        judged = self.values(reward, state, problem)
        return self._judge(environment, reward, state, judged, problem, num_updates)

    @compiled
    def _judge(self, environment, reward, state, judged, problem, num_updates):
        return report_on(
            environment,
            reward,
            state.policy,
            state.batch,
            problem,
            seen=judged.seen,
            advantages=judged.advantages,
            kl=state.kl,
            steps=num_updates * self.steps_per_update,
        )

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
        judged = self.values(reward, state, problem)
        return self._take_steps(judged, state, problem, share, key=key)

    @compiled
    def _take_steps(
        self,
        judged: SoftValues,
        state: PPOState,
        problem: Problem,
        share: Float[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> PPOState:
        """Gradient steps towards what the batch shows."""
        observations = state.batch.observations
        flat = lambda x: x.reshape(-1, *x.shape[2:])
        advantages, value = judged.advantages, judged.critic
        behavior = distributions(state.policy, observations)
        data = observations, state.batch.actions, behavior, advantages, judged.seen
        samples = Samples(*jax.tree.map(flat, data))
        # In units of the temperature or of their spread, whichever is larger.
        scale = jnp.maximum(jnp.std(advantages), problem.temperature)
        arrays, rest = eqx.partition((state.policy, value), eqx.is_array)

        def loss(policy: AbstractPolicy, part: Samples):
            loss, kl = self.policy_loss(policy, part, problem)
            return loss / scale, kl

        def step(carry, rows):
            arrays, (policy_moments, critic_moments), kl = carry
            policy, value = eqx.combine(arrays, rest)
            part = jax.tree.map(lambda x: x[rows], samples)
            # Once the policy is too far from where the batch was made, it stays.
            rate = jnp.where(kl < self.max_kl, share * self.learning_rate, 0.0)
            policy, policy_moments, kl = descend_with(
                lambda policy: loss(policy, part), policy, policy_moments, rate
            )
            value, critic_moments = descend(
                lambda value: critic_loss(value, part.observations, part.values),
                value,
                critic_moments,
                share * self.critic_rate,
            )
            arrays = eqx.filter((policy, value), eqx.is_array)
            return (arrays, (policy_moments, critic_moments), kl), None

        start = arrays, state.moments, jnp.zeros((), jnp.float32)
        (arrays, moments, _), _ = jax.lax.scan(step, start, self._minibatches(key))
        policy, value = eqx.combine(arrays, rest)
        after = distributions(policy, samples.observations)
        kl = jnp.mean(jax.vmap(lambda p, q: p.kl(q))(after, samples.behavior))
        where = lambda s: (s.policy, s.critic, s.moments, s.kl)
        return eqx.tree_at(where, state, (policy, value, moments, kl))

    def _minibatches(self, key: PRNGKeyArray) -> Int[Array, "minibatches rows"]:
        """Which samples go into which step; every epoch deals all of them anew."""
        # Sorting numbers that carry their index is five times faster than `argsort`.
        shape, index_bits = (self.num_epochs, self.steps_per_update), jnp.uint64(32)
        shuffled = jr.bits(key, shape, jnp.uint64) << index_bits
        rows = jnp.arange(self.steps_per_update, dtype=jnp.uint64)
        order = jnp.sort(shuffled | rows[None, :], axis=1).astype(jnp.uint32)
        minibatches = self.num_epochs * self.num_minibatches
        return order.astype(jnp.int32).reshape(minibatches, -1)

    def policy_loss(
        self, policy: AbstractPolicy, samples: Samples, problem: Problem
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """`-min(ratio A, clip(ratio) A) + alpha KL(new, old)`, and the KL; averaged."""
        new = distributions(policy, samples.observations)
        log_prob = jax.vmap(lambda p, action: p.log_prob(action))
        log_ratio = log_prob(new, samples.actions) - log_prob(
            samples.behavior, samples.actions
        )
        ratio = jnp.exp(log_ratio)
        clipped = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        gain = jnp.minimum(ratio * samples.advantages, clipped * samples.advantages)
        kl = jax.vmap(lambda p, q: p.kl(q))(new, samples.behavior)
        return jnp.mean(problem.temperature * kl - gain), jnp.mean(kl)

    def values(self, reward: Reward, state: PPOState, problem: Problem) -> SoftValues:
        """A critic fitted to `state.batch`, and its soft values and advantages."""
        return soft_values(
            state.critic,
            rewards_paid(reward, state.batch),
            state.policy,
            state.batch,
            problem,
            trace=self.trace,
            num_fits=self.num_fits,
        )


def ppo_for(environment: AbstractWorld, **settings: Any) -> PPO:
    """PPO with settings that suit the actions, where no others are given.

    Where they are choices, advantages are small beside the values of long episodes, and
    had better lean on what was seen than on the critic. Where there is only one
    number of environments, each takes more steps, so that a batch is as large.
    """
    if isinstance(environment.action_space, Discrete):
        usual = dict(learning_rate=1e-3, trace=0.98, critic_hidden=(64, 64))
        settings = usual | settings
    return PPO(**settings).fitting(environment)


def ppo_from_scratch(environment: AbstractWorld, **settings: Any) -> PPO:
    """The same for a whole training on one reward, which robots learn otherwise.

    Steps of a robot are dear beside gradients. So batches are small, and each is
    learned from in many small steps.
    """
    if is_robot(environment):
        settings = ROBOTS | settings
    return ppo_for(environment, **settings)


def is_robot(environment: AbstractWorld) -> bool:
    """Whether the host steps it and actions are numbers: `ROBOTS` suit it."""
    return environment.is_stepped and not isinstance(environment.action_space, Discrete)
