"""Soft-optimal experts: in closed form where there is one, by PPO elsewhere."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, CartPole, Tabular
from hyperirl.inner import PPO, Report
from hyperirl.policies import AbstractPolicy, mlp_policy
from hyperirl.problem import Problem
from hyperirl.rewards import TableReward
from hyperirl.spaces import ActionSpace, Box

Progress = Callable[[float, str], None]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long an expert that has no closed form is trained."""

    num_updates: int = 150
    """Updates of the policy, each on fresh experience."""
    num_envs: int = 256
    """Environments that act at the same time; more make an update less noisy."""

    def __post_init__(self):
        if self.num_updates < 1 or self.num_envs < 1:
            raise ValueError(
                f"Training an expert takes at least one update and one environment, "
                f"got {self.num_updates} and {self.num_envs}."
            )


QUICK = Effort()
THOROUGH = Effort(num_updates=600, num_envs=512)


@dataclasses.dataclass(frozen=True)
class Expert:
    """A policy, and how it was made."""

    policy: AbstractPolicy
    description: str
    report: dict[str, Any]


def soft_optimal_expert(
    environment: AbstractEnvironment,
    problem: Problem,
    *,
    effort: Effort,
    key: PRNGKeyArray,
    on_progress: Progress | None = None,
) -> Expert:
    """The policy that is soft-optimal for the environment's true reward."""
    match environment:
        case Tabular():
            solve = eqx.filter_jit(exact.tabular.soft_optimal_policy)
            policy = solve(environment, TableReward(environment.rewards), problem)
            return Expert(policy, "exact: soft value iteration", {})
        case LQR(max_action=math.inf, max_norm=math.inf):
            solve = eqx.filter_jit(exact.lqr.soft_optimal_policy)
            policy = solve(environment, exact.lqr.true_reward(environment), problem)
            return Expert(policy, "exact: soft Riccati equation", {})
    return _train(environment, problem, effort, key, on_progress)


class _Scattered(AbstractEnvironment):
    """The same task, but some episodes start away from the usual place.

    A good expert rarely sees the states where it matters most what it does, forgets
    what to do there, and then fails. The soft-optimal policy is the same wherever
    episodes start.
    """

    task: AbstractEnvironment
    spread: Float[Array, " state"]  # Largest distance from the usual start.
    chance: Float[Array, ""]
    horizon: int = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        return self.task.observation_size

    @property
    def action_space(self) -> ActionSpace:
        return self.task.action_space

    def reset(self, *, key: PRNGKeyArray) -> Float[Array, " state"]:
        reset_key, move_key, choice_key = jr.split(key, 3)
        state = self.task.reset(key=reset_key)
        moved = state + jr.uniform(
            move_key, state.shape, state.dtype, -self.spread, self.spread
        )
        return jnp.where(jr.bernoulli(choice_key, self.chance), moved, state)

    def observe(self, state: Float[Array, " state"]) -> Float[Array, " obs"]:
        return self.task.observe(state)

    def reward(self, observation: Float[Array, " obs"], action: Array):
        return self.task.reward(observation, action)

    def advance(self, state: Float[Array, " state"], action: Array, *, key):
        return self.task.advance(state, action, key=key)


def _practice(environment: AbstractEnvironment, share: float) -> AbstractEnvironment:
    """Where to train, to act in `environment` after all of the training.

    What CartPole is scattered over shrinks with the share of the training done: first
    the policy learns what to do everywhere, then it is polished where it goes.
    """
    if not isinstance(environment, CartPole):
        return environment
    limits = jnp.stack([environment.track_limit, environment.angle_limit])
    position, angle = limits * (0.9 - 0.2 * share)
    velocity = jnp.full_like(position, 1.0 - 0.5 * share)
    return _Scattered(
        task=environment,
        spread=jnp.stack([position, velocity, angle, velocity]),
        chance=jnp.full_like(position, 0.5 - 0.25 * share),
        horizon=max(environment.horizon // 2, 1),
    )


_NUM_CHUNKS = 20  # How often the rates change and progress is reported.
_NUM_STEPS = 64
_FIRST_RATE, _LAST_RATE = 1e-3, 1e-5


def _train(
    environment: AbstractEnvironment,
    problem: Problem,
    effort: Effort,
    key: PRNGKeyArray,
    on_progress: Progress | None,
) -> Expert:
    """PPO whose learning rate falls to almost nothing, so that the policy settles."""
    policy_key, init_key, solve_key = jr.split(key, 3)
    space = environment.action_space
    policy = mlp_policy(
        environment.observation_size,
        space,
        key=policy_key,
        covariance="state",
        squash=isinstance(space, Box) and math.isfinite(space.high - space.low),
    )
    solver = _solver(effort, 0.0, 1.0)
    state = solver.init(_practice(environment, 0.0), policy, key=init_key)
    ends = np.linspace(0, effort.num_updates, _NUM_CHUNKS + 1).astype(int)
    report = None
    for chunk, (start, end) in enumerate(itertools.pairwise(ends)):
        shares = float(start / ends[-1]), float(end / ends[-1])
        practice = _practice(environment, shares[0])
        state, report = _solver(effort, *shares).solve(
            practice,
            practice.reward,
            state,
            problem,
            int(end - start),
            key=jr.fold_in(solve_key, chunk),
        )
        if on_progress is not None:
            on_progress(shares[1], f"soft return {report.soft_return:.2f}")
    steps = effort.num_updates * solver.steps_per_update
    description = f"PPO: {effort.num_updates} updates, {steps:,} steps"
    return Expert(state.policy, description, _plain(report) | {"steps": steps})


def _solver(effort: Effort, start: float, end: float) -> PPO:
    """For the part of the training between two shares of it."""
    rate = lambda share: _FIRST_RATE * (_LAST_RATE / _FIRST_RATE) ** share
    return PPO(
        learning_rate=rate(start),
        critic_rate=2 * rate(start),
        final_rate=rate(end) / rate(start),
        num_envs=effort.num_envs,
        num_steps=_NUM_STEPS,
        num_minibatches=8,
    )


def _plain(report: Report | None) -> dict[str, Any]:
    """The report as numbers; what a solver cannot know is left out."""
    numbers = (
        {}
        if report is None
        else {name: float(value) for name, value in vars(report).items()}
    )
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
