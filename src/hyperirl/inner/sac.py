"""Soft actor-critic at the problem's own temperature, from replayed experience.

Twin action values learn `Q(s, a) = r(s, a) + gamma E V(s')`, with the soft value
`V(s) = E_pi [min Q - alpha log pi]`; the policy climbs `V`. Discrete actions are summed
over, vectors are sampled. The temperature is fixed: it is part of `L_inner`.

The replay holds no rewards: they are those of the reward at hand whenever a transition
is drawn, so no experience is lost when the reward changes. States are those of the
replay; like PPO's they do not carry the weight `gamma^t`.
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Actors, Batch, act, distributions, start
from hyperirl.inner.action_values import ActionValue, action_value, soft_value
from hyperirl.inner.critic import Critic, critic
from hyperirl.inner.descent import descend, moments
from hyperirl.inner.report import report_on, rewards_paid, soft_values
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
from hyperirl.rewards import recorded


class Replay(eqx.Module):
    """A ring of transitions."""

    observations: Float[Array, "capacity obs"]
    actions: Int[Array, " capacity"] | Float[Array, "capacity act"]
    next_observations: Float[Array, "capacity obs"]
    terminated: Bool[Array, " capacity"]
    rewards: Float[Array, " capacity"] | None = None  # As in `Batch`.


class SACState(eqx.Module):
    """Everything that carries over from one solve to the next."""

    policy: AbstractPolicy
    twins: ActionValue  # Leaves have a first axis of 2.
    targets: ActionValue  # Follow the twins slowly.
    moments: tuple[optax.OptState, optax.OptState]  # Of policy and twins.
    replay: Replay
    stored: Int[Array, ""]  # Transitions so far.
    actors: Actors
    critic: Critic  # For the report only.
    kl: Float[Array, ""]  # Of the last update.


class SAC(AbstractInnerSolver):
    """`num_gradients` minibatch steps for every step of all environments.

    The learning rates fall linearly during a solve to the share `final_rate`. The
    report plays `num_report_steps` steps in every environment at the end of a solve.
    """

    learning_rate: Float[Array, ""] = hyperparameter(1e-3)
    critic_rate: Float[Array, ""] = hyperparameter(1e-3)
    final_rate: Float[Array, ""] = hyperparameter(0.1)
    target_rate: Float[Array, ""] = hyperparameter(0.01)
    num_envs: int = eqx.field(static=True, default=32)
    num_gradients: int = eqx.field(static=True, default=4)
    batch_size: int = eqx.field(static=True, default=256)
    capacity: int = eqx.field(static=True, default=131_072)
    num_initial_steps: int = eqx.field(static=True, default=100)
    num_report_steps: int = eqx.field(static=True, default=128)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(64, 64))

    def __check_init__(self):
        if self.capacity % self.num_envs:
            raise ValueError(
                f"`capacity` must be a multiple of `num_envs`, got {self.capacity} and "
                f"{self.num_envs}."
            )
        if self.num_initial_steps * self.num_envs > self.capacity:
            raise ValueError(
                f"A replay of {self.capacity} transitions cannot hold the first "
                f"{self.num_initial_steps} steps of {self.num_envs} environments."
            )

    @property
    def steps_per_update(self) -> int:
        return self.num_envs

    def fitting(self, environment: AbstractWorld) -> "SAC":
        """With as much experience at first, for the report and in the replay."""
        num_envs = environment.num_envs
        if num_envs is None:
            return self
        steps = lambda number: math.ceil(number * self.num_envs / num_envs)
        return dataclasses.replace(
            self,
            num_envs=num_envs,
            capacity=num_envs * math.ceil(self.capacity / num_envs),
            num_initial_steps=steps(self.num_initial_steps),
            num_report_steps=steps(self.num_report_steps),
        )

    def init(
        self,
        environment: AbstractWorld,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> SACState:
        init = _init if environment.is_stepped else _init_compiled
        return init(self, environment, policy, key)

    def run(
        self,
        environment: AbstractWorld,
        reward: Reward,
        state: SACState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[SACState, SolveReport]:
        total = jnp.maximum(num_updates, 1).astype(jnp.float32)
        loop_key, report_key = jr.split(key)

        def body(i: Int[Array, ""], state: SACState) -> SACState:
            act_key, update_key = jr.split(jr.fold_in(loop_key, i))
            share = 1 - (1 - self.final_rate) * i.astype(jnp.float32) / total
            actors, batch = act(environment, state.policy, state.actors, 1, key=act_key)
            state = self.store(eqx.tree_at(lambda s: s.actors, state, actors), batch)
            return self.update(reward, state, problem, share, key=update_key)

        state = repeat(num_updates, body, state)
        return self._report(
            environment, reward, state, problem, num_updates, report_key
        )

    @compiled
    def store(self, state: SACState, batch: Batch) -> SACState:
        """Puts a batch into the replay, over the oldest transitions."""
        new = _transitions(batch)
        size = new.terminated.shape[0]
        place = state.stored % self.capacity
        write = lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, 0)
        replay = jax.tree.map(write, state.replay, new)
        where = lambda s: (s.replay, s.stored)
        return eqx.tree_at(where, state, (replay, state.stored + size))

    @compiled
    def update(
        self,
        reward: Reward,
        state: SACState,
        problem: Problem,
        share: Float[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> SACState:
        """`num_gradients` steps of policy and action values, on replayed transitions.

        No environment is needed: acting is apart.
        """
        row_key, step_key = jr.split(key)
        shape = self.num_gradients, self.batch_size
        available = jnp.minimum(state.stored, self.capacity)
        rows = jr.randint(row_key, shape, 0, available, jnp.int32)
        learner = state.policy, state.twins, state.targets, state.moments
        arrays, rest = eqx.partition(learner, eqx.is_array)

        def step(arrays, now):
            rows, key = now
            part = jax.tree.map(lambda x: x[rows], state.replay)
            learner = eqx.combine(arrays, rest)
            learner = self._step(learner, part, reward, problem, share, key)
            return eqx.filter(learner, eqx.is_array), None

        keys = jr.split(step_key, self.num_gradients)
        arrays, _ = jax.lax.scan(step, arrays, (rows, keys))
        policy, twins, targets, moments = eqx.combine(arrays, rest)
        observations = state.replay.observations[rows[-1]]
        before = distributions(state.policy, observations)
        after = distributions(policy, observations)
        kl = jnp.mean(jax.vmap(lambda p, q: p.kl(q))(after, before))
        where = lambda s: (s.policy, s.twins, s.targets, s.moments, s.kl)
        return eqx.tree_at(where, state, (policy, twins, targets, moments, kl))

    def _step(self, learner, part: Replay, reward, problem: Problem, share, key):
        """One step of everything, on one minibatch."""
        policy, twins, followers, (policy_moments, twin_moments) = learner
        target_key, policy_key = jr.split(key)
        targets = td_targets(policy, followers, part, reward, problem, key=target_key)

        def value_loss(twins: ActionValue) -> Float[Array, ""]:
            error = lambda q, *step: q.error(*step)
            per_step = eqx.filter_vmap(error, in_axes=(None, 0, 0, 0))
            per_twin = eqx.filter_vmap(
                per_step, in_axes=(eqx.if_array(0), None, None, None)
            )
            errors = per_twin(twins, part.observations, part.actions, targets)
            return jnp.sum(jnp.mean(errors, axis=1))

        def policy_loss(policy: AbstractPolicy) -> Float[Array, ""]:
            values = values_of(policy, twins, part.observations, problem, policy_key)
            return -jnp.mean(values)

        twins, twin_moments = descend(
            value_loss, twins, twin_moments, share * self.critic_rate
        )
        policy, policy_moments = descend(
            policy_loss, policy, policy_moments, share * self.learning_rate
        )
        follow = lambda old, new: old + self.target_rate * (new - old)
        old, rest = eqx.partition(followers, eqx.is_inexact_array)
        moved = jax.tree.map(follow, old, eqx.filter(twins, eqx.is_inexact_array))
        followers = eqx.combine(moved, rest)
        return policy, twins, followers, (policy_moments, twin_moments)

    def _report(self, environment, reward, state: SACState, problem, num_updates, key):
        """Judged like any other policy: on fresh experience, by a critic of states."""
        actors, batch = act(
            environment, state.policy, state.actors, self.num_report_steps, key=key
        )
        steps = (num_updates + self.num_report_steps) * self.num_envs
        value, report = self._judge(environment, reward, state, problem, batch, steps)
        where = lambda s: (s.actors, s.critic)
        return eqx.tree_at(where, state, (actors, value)), report

    @compiled
    def _judge(self, environment, reward, state: SACState, problem, batch, steps):
        judged = soft_values(
            state.critic,
            rewards_paid(reward, batch),
            state.policy,
            batch,
            problem,
            trace=jnp.asarray(0.95, jnp.float32),
            num_fits=10,
        )
        report = report_on(
            environment,
            reward,
            state.policy,
            batch,
            problem,
            seen=judged.seen,
            advantages=judged.advantages,
            kl=state.kl,
            steps=steps,
        )
        return judged.critic, report


def values_of(
    policy: AbstractPolicy,
    twins: ActionValue,
    observations: Float[Array, "batch obs"],
    problem: Problem,
    key: PRNGKeyArray,
) -> Float[Array, " batch"]:
    """`E_pi [min Q - alpha log pi]` of each observation, under the smaller twin."""

    def one(observation, key):
        smaller = lambda f: jnp.min(eqx.filter_vmap(f)(twins), axis=0)
        return soft_value(
            policy.distribution(observation),
            lambda action: smaller(lambda q: q(observation, action)),
            lambda: smaller(lambda q: q.all(observation)),
            problem.temperature,
            key=key,
        )

    return jax.vmap(one)(observations, jr.split(key, observations.shape[0]))


def td_targets(
    policy: AbstractPolicy,
    followers: ActionValue,
    part: Replay,
    reward: Reward,
    problem: Problem,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " batch"]:
    """`r + gamma V(s')`, with `V = 0` after a termination."""
    rewards = recorded(reward, part)
    if rewards is None:
        rewards = jax.vmap(reward)(part.observations, part.actions).astype(jnp.float32)
    values = values_of(policy, followers, part.next_observations, problem, key)
    return rewards + problem.discount * jnp.where(part.terminated, 0.0, values)


def _transitions(batch: Batch) -> Replay:
    """What a replay keeps of a batch: one row a step."""
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    return Replay(
        flat(batch.observations),
        flat(batch.actions),
        flat(batch.next_observations),
        flat(batch.terminated),
        None if batch.rewards is None else flat(batch.rewards),
    )


def _init(solver: SAC, environment: Any, policy: Any, key: PRNGKeyArray) -> SACState:
    start_key, twin_key, critic_key, act_key = jr.split(key, 4)
    size, space = environment.observation_size, environment.action_space
    actors = start(environment, solver.num_envs, key=start_key)
    steps = solver.num_initial_steps
    actors, batch = act(environment, policy, actors, steps, key=act_key)
    seen = _transitions(batch)
    inputs = seen.observations, seen.actions
    make = lambda key: action_value(*inputs, space, solver.hidden, key=key)
    twins = eqx.filter_vmap(make)(jr.split(twin_key))
    empty = lambda x: jnp.zeros((solver.capacity, *x.shape[1:]), x.dtype)
    replay = jax.tree.map(empty, seen)
    state = SACState(
        policy,
        twins,
        twins,
        (moments(policy), moments(twins)),
        replay,
        jnp.zeros((), jnp.int32),
        actors,
        critic(size, (32, 32), key=critic_key),
        jnp.zeros((), jnp.float32),
    )
    return solver.store(state, batch)


_init_compiled = eqx.filter_jit(_init)
