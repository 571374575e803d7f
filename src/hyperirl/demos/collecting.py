"""Demonstrations of a soft-optimal expert, made here."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import equinox as eqx
import jax.random as jr

from hyperirl.demos.checks import check_against
from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.experts import QUICK, Effort, Progress, soft_optimal_expert
from hyperirl.demos.provenance import Provenance
from hyperirl.policies import log_probs
from hyperirl.problem import problem as make_problem
from hyperirl.rollout import rollout
from hyperirl.tasks import AnyTask, Task, as_task, make, names


def collect(
    task: AnyTask,
    num_episodes: int = 100,
    *,
    seed: int = 0,
    temperature: float | None = None,
    discount: float = 0.99,
    options: Mapping[str, Any] | None = None,
    effort: Effort = QUICK,
    on_progress: Progress | None = None,
    horizon: int | None = None,
    workers: int = 0,
    ray: bool = False,
) -> Demos:
    """Episodes of the soft-optimal expert for an environment's true reward.

    The same arguments give the same demonstrations on the same machine.

    Args:
        task: The name of a built-in task, a `Task`, or an environment.
        num_episodes: How many episodes.
        seed: Decides the expert's training and the episodes.
        temperature: `alpha` of the expert: how much its entropy is worth; what is
            usual for the task by default.
        discount: `gamma` of the expert.
        options: Of a built-in task's environment: numbers, strings and lists.
        effort: How long an expert that is not known in closed form is trained.
        on_progress: Called with the fraction of the training done and a few words.
        horizon: Where episodes of an environment of Gymnasium's are cut; by default
            where it says.
        workers: Processes that step shards of an environment of Gymnasium's; 0: this
            one does.
        ray: Whether the workers are actors of Ray, which must be running.
    """
    if num_episodes < 1:
        raise DemosError(f"Cannot collect {num_episodes} episodes; ask for at least 1.")
    options = {} if options is None else dict(options)
    if options:
        task = _changed(task, options)
    task = as_task(task, workers=workers, ray=ray, horizon=horizon)
    environment = task.environment
    if not environment.has_reward:
        raise DemosError(
            f"{task.name} does not know its true reward, so there is no expert to "
            "train; write its method `reward`, or record demonstrations elsewhere."
        )
    alpha: float = task.temperature if temperature is None else temperature
    problem = make_problem(alpha, discount)
    expert_key, rollout_key = jr.split(jr.key(seed))
    expert = soft_optimal_expert(
        task,
        problem,
        effort=effort,
        key=expert_key,
        on_progress=on_progress,
    )
    batch = rollout(environment, expert.policy, num_episodes, key=rollout_key)
    provenance = Provenance(
        environment=task.name,
        options=options,
        horizon=environment.horizon,
        temperature=alpha,
        discount=discount,
        expert=expert.description,
        report=expert.report,
        seed=seed,
        hyperirl_version=metadata.version("hyperirl"),
    )
    demos = Demos(batch, provenance, eqx.filter_jit(log_probs)(expert.policy, batch))
    check_against(demos, environment)
    return demos


def _changed(task: AnyTask, options: Mapping[str, Any]) -> Task:
    """The task with options of its environment changed, which a built-in one has."""
    if task not in names:
        raise DemosError(
            f"Options ({', '.join(options)}) are for built-in tasks, by their names; "
            "make your environment with them instead, in a function that you name as "
            "`module:function`."
        )
    return make(task, **options)
