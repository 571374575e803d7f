"""Soft-optimal experts: in closed form where there is one, by PPO elsewhere."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.inner import (
    PPO,
    ROBOTS,
    SolveReport,
    chunks,
    is_robot,
    true_reward,
)
from hyperirl.networks import Normalizer
from hyperirl.policies import AbstractPolicy, mlp_policy
from hyperirl.problem import Problem
from hyperirl.rewards import fit_normalizer
from hyperirl.rollout import rollout
from hyperirl.spaces import Box
from hyperirl.tasks import Task

Progress = Callable[[float, str], None]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long an expert that has no closed form is trained."""

    num_updates: int | None = None
    """Updates of the policy, each on fresh experience; by default 150. Where the host
    steps the environment, 400, and 1,600 small ones if actions are numbers."""
    num_envs: int | None = None
    """Environments that act at the same time; more make an update less noisy. By
    default 256. Where the host steps them, 128, and 16 if actions are numbers."""

    def __post_init__(self):
        for number in (self.num_updates, self.num_envs):
            if number is not None and number < 1:
                raise ValueError(
                    "Training an expert takes at least one update and one environment, "
                    f"got {self.num_updates} and {self.num_envs}."
                )

    def at(self, environment: AbstractWorld) -> "Amount":
        """The effort with nothing left open: robots need more updates and less each."""
        usual = Amount(400, 128) if environment.is_stepped else Amount(150, 256)
        if is_robot(environment):
            usual = Amount(1600, ROBOTS["num_envs"])
        return Amount(
            self.num_updates or usual.num_updates, self.num_envs or usual.num_envs
        )


class Amount(NamedTuple):
    """So many updates, with so many environments."""

    num_updates: int
    num_envs: int


QUICK = Effort()
THOROUGH = Effort(num_updates=600)  # For compiled tasks: robots have more as it is.


@dataclasses.dataclass(frozen=True)
class Expert:
    """A policy, and how it was made."""

    policy: AbstractPolicy
    description: str
    report: dict[str, Any]


def soft_optimal_expert(
    task: Task,
    problem: Problem,
    *,
    effort: Effort,
    key: PRNGKeyArray,
    on_progress: Progress | None = None,
) -> Expert:
    """The policy that is soft-optimal for the task's true reward."""
    closed = exact.closed_form(task.environment)
    if closed is not None:
        solve = eqx.filter_jit(closed.optimal_policy)
        policy = solve(closed.true_reward(), problem)
        return Expert(policy, f"exact: {closed.method}", {})
    amount = effort.at(task.environment)
    return _train(task, problem, amount, key, on_progress)


_NUM_CHUNKS = 20  # How often the rates change and progress is reported.
_NUM_STEPS = 64
_SCOUTING = 0.1  # Of the updates, before the training, to see how large things are.


def _rate(share: float) -> float:
    """Learns fast for the first half of the training, then ever more slowly."""
    return 1e-3 * 1e-2 ** max(0.0, 2 * share - 1)


def _train(
    task: Task,
    problem: Problem,
    effort: Amount,
    key: PRNGKeyArray,
    on_progress: Progress | None,
) -> Expert:
    """PPO whose learning rate falls to almost nothing, so that the policy settles."""
    policy_key, init_key, solve_key = jr.split(key, 3)
    environment = task.environment
    normalizer = None
    if environment.is_stepped:
        normalizer = _scouted(environment, problem, effort, key)
    policy = _untrained(environment, normalizer, policy_key)
    solver = _solver(environment, effort, 0.0, 1.0)
    state = solver.init(task.practice(environment, problem, 0.0), policy, key=init_key)
    report = SolveReport.unknown()
    for i, chunk in enumerate(chunks(effort.num_updates, _NUM_CHUNKS)):
        practice = task.practice(environment, problem, chunk.start)
        state, report = _solver(environment, effort, chunk.start, chunk.end).solve(
            practice,
            true_reward(practice),
            state,
            problem,
            chunk.num_updates,
            key=jr.fold_in(solve_key, i),
        )
        if on_progress is not None:
            on_progress(chunk.end, f"soft return {report.soft_return:.2f}")
    steps = effort.num_updates * solver.steps_per_update
    description = f"PPO: {effort.num_updates} updates, {steps:,} steps"
    return Expert(state.policy, description, _plain(report) | {"steps": steps})


def _untrained(
    environment: AbstractWorld, normalizer: Normalizer | None, key: PRNGKeyArray
) -> AbstractPolicy:
    space = environment.action_space
    return mlp_policy(
        environment.observation_size,
        space,
        key=key,
        covariance="state",
        squash=isinstance(space, Box) and math.isfinite(space.high - space.low),
        normalizer=normalizer,
    )


def _scouted(
    environment: AbstractWorld, problem: Problem, effort: Amount, key: PRNGKeyArray
) -> Normalizer:
    """How large observations are, as a policy sees them that has trained a little.

    Nothing is known of a world that is not ours, and a robot's speeds are a hundred
    times its angles.
    """
    policy_key, init_key, solve_key, play_key = jr.split(jr.fold_in(key, 1), 4)
    solver = _solver(environment, effort, 0.0, 0.5)
    policy = _untrained(environment, None, policy_key)
    state = solver.init(environment, policy, key=init_key)
    updates = math.ceil(_SCOUTING * effort.num_updates)
    reward = true_reward(environment)
    state, _ = solver.solve(environment, reward, state, problem, updates, key=solve_key)
    return fit_normalizer(rollout(environment, state.policy, 32, key=play_key))


def _solver(
    environment: AbstractWorld, effort: Amount, start: float, end: float
) -> PPO:
    """For the part of the training between two shares of it."""
    first, last = jnp.float32(_rate(start)), jnp.float32(_rate(end))
    settings = dict(critic_rate=2 * first, num_steps=_NUM_STEPS, num_minibatches=8)
    if is_robot(environment):
        settings = ROBOTS | dict(critic_rate=first)
    rates = dict(learning_rate=first, final_rate=last / first)
    settings |= rates | dict(num_envs=effort.num_envs)
    return PPO(**settings).fitting(environment)


def _plain(report: SolveReport) -> dict[str, Any]:
    """The report as numbers; what a solver cannot know is left out."""
    plain = {name: float(value) for name, value in vars(report).items()}
    return {name: value for name, value in plain.items() if math.isfinite(value)}
