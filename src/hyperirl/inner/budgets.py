"""Solving within a budget: of steps, of seconds, or until it is good enough."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.random as jr
from jaxtyping import PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.solver import AbstractInnerSolver, Reward, SolveReport
from hyperirl.problem import Problem


@dataclasses.dataclass(frozen=True)
class SolveBudget:
    """When to stop; whatever comes first. At least one limit must be given."""

    steps: int | None = None
    """Environment steps."""
    seconds: float | None = None
    """Of wall-clock; compilation counts."""
    tolerance: float | None = None
    """Stop when the gap is below this by two standard errors."""

    def __post_init__(self):
        limits = {"steps": self.steps, "seconds": self.seconds}
        limits["tolerance"] = self.tolerance
        if all(limit is None for limit in limits.values()):
            raise ValueError(
                "A budget without limits would never end: give `steps`, `seconds` or "
                "`tolerance`."
            )
        for name, limit in limits.items():
            if limit is not None and not limit > 0:
                raise ValueError(f"`{name}` must be positive, got {limit}.")

    def met(self, report: SolveReport) -> bool:
        """Whether the solution is good enough. An unknown gap never is."""
        if self.tolerance is None:
            return False
        return float(report.gap + 2 * report.gap_error) < self.tolerance


@dataclasses.dataclass(frozen=True)
class SolveProgress:
    """Where a solve stands."""

    steps: int
    seconds: float
    report: SolveReport


def solve_until(
    solver: AbstractInnerSolver,
    environment: AbstractWorld,
    reward: Reward,
    state: Any,
    problem: Problem,
    budget: SolveBudget,
    *,
    key: PRNGKeyArray,
    updates_per_call: int = 10,
    callback: Callable[[Any, SolveProgress], None] | None = None,
) -> tuple[Any, SolveProgress]:
    """Calls `solver.solve` until the budget is used up or its tolerance is met.

    The tolerance is looked at on fresh experience after every call, so it is met by
    luck about one time in forty, at each look.

    Args:
        solver: Which solver.
        environment: Where to act.
        reward: What to maximize.
        state: Where to start.
        problem: Temperature and discount.
        budget: When to stop.
        key: For everything random.
        updates_per_call: How much to do between two looks at the budget. The last call
            of a budget of steps does what is left, and at least one update.
        callback: Called with the state and the progress after every call.
    """
    began, steps, calls = time.monotonic(), 0, 0
    while True:
        updates = updates_per_call
        if budget.steps is not None and solver.steps_per_update:
            left = (budget.steps - steps) // solver.steps_per_update
            updates = max(min(updates, left), 1)
        state, report = jax.block_until_ready(
            solver.solve(
                environment, reward, state, problem, updates, key=jr.fold_in(key, calls)
            )
        )
        calls, steps = calls + 1, steps + int(report.steps)
        progress = SolveProgress(steps, time.monotonic() - began, report)
        if callback is not None:
            callback(state, progress)
        exact = solver.steps_per_update == 0  # Once is enough.
        spent = budget.steps is not None and steps >= budget.steps
        late = budget.seconds is not None and progress.seconds >= budget.seconds
        if exact or spent or late or budget.met(report):
            return state, progress
