"""Train a policy on a reward: experts, fresh policies, or a reward of your own."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.budgets import SolveBudget, SolveProgress, solve_until
from hyperirl.inner.exact import true_reward
from hyperirl.inner.ppo import is_robot, ppo_from_scratch
from hyperirl.inner.solver import AbstractInnerSolver, Reward, SolveReport
from hyperirl.policies import AbstractPolicy, log_probs, mlp_policy
from hyperirl.problem import Problem
from hyperirl.problem import problem as make_problem
from hyperirl.programs import compiled
from hyperirl.rewards import rewards_of
from hyperirl.rollout import rollout
from hyperirl.spaces import Box
from hyperirl.trajectories import Trajectories, returns


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a learning curve: means over fresh episodes of the policy."""

    steps: int  # Of training so far.
    seconds: float  # Of training so far, without the evaluation.
    true_return: float  # Undiscounted, of the environment's own reward if it has one...
    true_return_error: float  # ...with its standard error.
    soft_return: float  # Discounted, of the trained reward and entropy, until cut off.
    report: SolveReport


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """A trained policy, and how it got there."""

    policy: AbstractPolicy
    state: Any  # The solver's, to go on from.
    curve: tuple[Point, ...]
    report: SolveReport


def train(
    environment: AbstractWorld,
    reward: Reward | None = None,
    *,
    problem: Problem | None = None,
    solver: AbstractInnerSolver | None = None,
    policy: AbstractPolicy | None = None,
    budget: SolveBudget | None = None,
    seed: int = 0,
    num_evaluation_episodes: int = 64,
    updates_per_call: int | None = None,
    callback: Callable[[Point], None] | None = None,
) -> TrainedPolicy:
    """Trains a policy on a reward from scratch, at a fixed temperature.

    Args:
        environment: Where to act.
        reward: What to maximize; the environment's own by default.
        problem: Temperature and discount; 0.1 and 0.99 by default.
        solver: How; by default PPO with the settings of `ppo_from_scratch`.
        policy: Where to start; by default one that suits environment and solver.
        budget: When to stop; 500,000 steps by default.
        seed: Decides everything random.
        num_evaluation_episodes: Fresh episodes for each point of the curve.
        updates_per_call: Updates from one point of the curve to the next. By default
            10, and 40 where the host steps a robot, whose updates are smaller.
        callback: Called with every point as it comes.
    """
    reward = true_reward(environment) if reward is None else reward
    problem = make_problem() if problem is None else problem
    solver = ppo_from_scratch(environment) if solver is None else solver
    budget = SolveBudget(steps=500_000) if budget is None else budget
    if updates_per_call is None:
        updates_per_call = 40 if is_robot(environment) else 10
    policy_key, state_key, solve_key, evaluation_key = jr.split(jr.key(seed), 4)
    if policy is None:
        policy = policy_for(environment, solver, key=policy_key)
    state = solver.init(environment, policy, key=state_key)
    curve, evaluating = [], 0.0

    def record(state: Any, progress: SolveProgress) -> None:
        nonlocal evaluating
        began = time.monotonic()
        key = jr.fold_in(evaluation_key, len(curve))
        evaluate = _evaluate if environment.is_stepped else _evaluate_compiled
        measured = evaluate(
            environment, reward, state.policy, problem, num_evaluation_episodes, key
        )
        true_return, error, soft_return = map(float, measured)
        seconds = progress.seconds - evaluating
        report = progress.report
        point = Point(progress.steps, seconds, true_return, error, soft_return, report)
        curve.append(point)
        if callback is not None:
            callback(point)
        evaluating += time.monotonic() - began

    state, progress = solve_until(
        solver,
        environment,
        reward,
        state,
        problem,
        budget,
        key=solve_key,
        updates_per_call=updates_per_call,
        callback=record,
    )
    return TrainedPolicy(state.policy, state, tuple(curve), progress.report)


def policy_for(
    environment: AbstractWorld, solver: AbstractInnerSolver, *, key: PRNGKeyArray
) -> AbstractPolicy:
    """The kind of policy a solver needs; else two hidden tanh layers of 32 or 64.

    A box with bounds gets a Gaussian squashed into it, any other a Gaussian with a full
    covariance.
    """
    size, space = environment.observation_size, environment.action_space
    required = solver.required_policy(environment)
    if required is not None:
        return required
    if not isinstance(space, Box):
        return mlp_policy(size, space, hidden=(32, 32), key=key)
    if jnp.isfinite(space.high):
        return mlp_policy(size, space, covariance="state", squash=True, key=key)
    return mlp_policy(size, space, covariance="full", key=key)


def _evaluate(
    environment: AbstractWorld,
    reward: Any,
    policy: Any,
    problem: Problem,
    num_episodes: int,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Mean true return, its standard error, and mean discounted soft return.

    The first two are NaN where the environment has no reward of its own.
    """
    episodes = rollout(environment, policy, num_episodes, key=key)
    return _measure(environment, reward, policy, problem, episodes)


_evaluate_compiled = eqx.filter_jit(_evaluate)


@compiled
def _measure(environment, reward, policy, problem: Problem, episodes: Trajectories):
    num_episodes = episodes.num_episodes
    true = jnp.full(num_episodes, jnp.nan, jnp.float32)
    if getattr(environment, "has_reward", True):
        assert episodes.rewards is not None
        true = returns(episodes, episodes.rewards)
    rewards = rewards_of(reward, episodes).astype(jnp.float32)
    soft = rewards - problem.temperature * log_probs(policy, episodes)
    error = jnp.std(true) / num_episodes**0.5
    return jnp.mean(true), error, jnp.mean(returns(episodes, soft, problem.discount))
