"""What a user calls: learn a reward, or go on learning it.

Everything is checked before anything is created, so that a start that was refused
leaves nothing behind.
"""

import dataclasses
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optax

from hyperirl import demos as demos_lib
from hyperirl.curvature import AbstractSolver
from hyperirl.demos import Demos, DemosError
from hyperirl.hypergradient import AbstractEstimator
from hyperirl.inner import AbstractInnerSolver
from hyperirl.learning.config import Config, complete, from_json, shown_steps
from hyperirl.learning.given import Given, describe
from hyperirl.learning.loop import OnStep, run
from hyperirl.learning.result import Result
from hyperirl.learning.setup import Setup, prepare
from hyperirl.options import NAMES, Options
from hyperirl.policies import AbstractPolicy
from hyperirl.progress import showing
from hyperirl.rewards import AbstractReward
from hyperirl.runs import RunError, RunFolder
from hyperirl.tasks import AnyTask, Task, as_task, is_safe

_KEPT_DEMOS = "demos.npz"


def learn(
    task: AnyTask = "cartpole",
    demos: str | Path | Demos | None = None,
    method: str | None = None,
    *,
    reward: str | AbstractReward | None = None,
    policy: AbstractPolicy | None = None,
    inner: str | AbstractInnerSolver | None = None,
    estimator: AbstractEstimator | None = None,
    solver: str | AbstractSolver | None = None,
    optimizer: str | optax.GradientTransformation | None = None,
    out: str | Path | None = None,
    paper: bool = False,
    progress: bool = True,
    on_step: OnStep | None = None,
    command: Sequence[str] | None = None,
    horizon: int | None = None,
    workers: int = 0,
    ray: bool = False,
    **options: Any,
) -> Result:
    """Learns a reward from demonstrations.

    ```
    result = hyperirl.learn("cartpole")
    result.reward(observation, action)
    ```

    Args:
        task: What was demonstrated: the name of a built-in task, `gym:ID`, a `Task`,
            an environment (ours or Gymnasium's), or a function that makes one.
        demos: Demonstrations, a file of them, or the name of bundled ones; by default
            those of the task.
        method: fisher (the default), explicit, sketch, matching (the default for
            robots), ml-irl, exact or bc; `Options.method` has all.
        reward: What is learned: mlp, quadratic or table; or a reward to start from.
        policy: An untrained policy for the inner problem.
        inner: Who solves the inner problem: ppo, sac, reinforce, exact; or a solver.
        estimator: Who estimates the hypergradient, in place of a method.
        solver: Who solves for the curvature, such as cg or kfac; or a solver, which
            has its own damping.
        optimizer: Of the reward's parameters: the name of one of Optax's, which gets
            the learning rate, schedule and clipping of the options; or one ready made.
        out: A folder to keep the run in; without one it is only returned.
        paper: Whether the settings of the paper's authors come before our own.
        progress: Whether to show the numbers of each step.
        on_step: Called with a row of numbers after each outer step.
        command: What was typed, for the record; by default that of this process.
        horizon: After how many steps episodes of an environment of Gymnasium's are cut;
            by default as it says, or as the demonstrations are if it does not.
        workers: Processes that step shards of an environment of Gymnasium's; 0: this
            one does. Another number is another run.
        ray: Whether the workers are actors of Ray, which must be running.
        **options: Other fields of `Options`, such as `seed`, `steps` or `damping`.
    """
    handed: dict[str, Any] = dict(
        reward=reward,
        policy=policy,
        inner=inner,
        estimator=estimator,
        solver=solver,
        optimizer=optimizer,
    )
    said = {name: thing for name, thing in handed.items() if isinstance(thing, str)}
    objects = {name: t for name, t in handed.items() if not isinstance(t, str)}
    setup = set_up(
        task,
        demos,
        make_options(method=method, **said, **options),
        given=Given(**objects),
        paper=paper,
        horizon=horizon,
        workers=workers,
        ray=ray,
    )
    folder = None
    if out is not None:
        folder = create_folder(setup, out, sys.argv if command is None else command)
    with showing(progress and on_step is None, shown_steps(setup.config)) as show:
        return run(setup, folder, on_step=on_step or show)


def make_options(**said: Any) -> Options:
    """Options by name; one sentence if there is no such option."""
    if unknown := sorted(set(said) - set(NAMES)):
        near = difflib.get_close_matches(unknown[0], NAMES, n=1, cutoff=0.7)
        rest = (
            f"do you mean `{near[0]}`?" if near else f"choose among {', '.join(NAMES)}."
        )
        raise ValueError(f"There is no option `{unknown[0]}`; {rest}")
    options = Options(**said)
    options.check()
    return options


def set_up(
    task: AnyTask,
    demos: str | Path | Demos | None,
    said: Options,
    *,
    given: Given | None = None,
    paper: bool = False,
    horizon: int | None = None,
    workers: int = 0,
    ray: bool = False,
) -> Setup:
    """All parts of a run, checked; nothing is written."""
    given = Given() if given is None else given
    loaded = None if demos is None else _loaded(demos)
    found = as_task(
        task,
        workers=workers,
        ray=ray,
        horizon=horizon,
        longest=None if loaded is None else _longest(loaded),
    )
    source = found.demos if demos is None else demos
    if source is None:
        raise DemosError(
            f"There are no bundled demonstrations of {found.name}; give some as "
            "`demos`, or make some with `hyperirl demos collect`."
        )
    loaded = _loaded(source) if loaded is None else loaded
    pinned = given.described()
    if isinstance(task, str) and is_safe(task):
        found = _as_recorded(found, loaded)
    else:
        pinned["env"] = describe(found.environment)
    demos_lib.check_against(loaded, found.environment)
    config = complete(
        said,
        found,
        paper=paper,
        demos="given" if isinstance(source, Demos) else str(source),
        demos_hash=demos_lib.content_hash(loaded),
        given=pinned,
        workers=workers,
    )
    return prepare(config, found, loaded, given)


def create_folder(setup: Setup, out: str | Path, command: Sequence[str]) -> RunFolder:
    """A folder for the run, which holds its demonstrations unless they are bundled."""
    folder = RunFolder.create(out, setup.config.to_json(), command)
    if setup.config.demos not in demos_lib.bundled:
        demos_lib.save(setup.demos, folder.path / _KEPT_DEMOS, overwrite=True)
    return folder


def reopen(
    folder: RunFolder,
    *,
    task: AnyTask | None = None,
    given: Given | None = None,
    workers: int | None = None,
    ray: bool = False,
) -> Setup:
    """The parts of a run that has a folder.

    Objects that the run was given must be given again, and be the same. A folder never
    makes us import anything: an environment that is not built in must be named again.

    Args:
        folder: Of the run.
        task: Its environment, if that is not built in.
        given: Its objects, if it was given some.
        workers: Who step its environment; by default as many as before. It goes on to
            the bit only with as many.
        ray: Whether they are actors of Ray, which must be running: a folder never
            makes us join a cluster.
    """
    config = from_json(folder.config, folder.path / "config.json")
    given = Given() if given is None else given
    loaded = _kept_demos(folder, config)
    pinned = given.described()
    stepping: Any = dict(
        workers=config.workers if workers is None else workers,
        ray=ray,
        horizon=config.horizon or None,
    )
    if "env" in config.given:
        if task is None:
            raise RunError(
                f"The run in {folder.path} is in an environment of its own, "
                f"{config.env!r}; name it again: `task=` in Python, `--env` on the "
                "command line."
            )
        found = as_task(task, **stepping)
        pinned["env"] = describe(found.environment)
    else:
        if not is_safe(config.env):
            raise RunError(f"{folder.path} names no task that we know: {config.env!r}.")
        found = as_task(config.env, **stepping)
        found = _as_recorded(found, loaded)
    _check_given(folder, config, pinned)
    found = dataclasses.replace(found, name=config.env)
    demos_lib.check_against(loaded, found.environment)
    return prepare(config, found, loaded, given)


def resume(
    path: str | Path,
    *,
    task: AnyTask | None = None,
    reward: AbstractReward | None = None,
    policy: AbstractPolicy | None = None,
    inner: AbstractInnerSolver | None = None,
    estimator: AbstractEstimator | None = None,
    solver: AbstractSolver | None = None,
    optimizer: optax.GradientTransformation | None = None,
    progress: bool = True,
    on_step: OnStep | None = None,
    workers: int | None = None,
    ray: bool = False,
) -> Result:
    """Goes on with a run where its last checkpoint is; the end is the same.

    Args:
        path: The folder of the run.
        task: Its environment, if that is not built in.
        reward: The reward, if the run was given one...
        policy: ...and so on: what it was given as an object.
        inner: See `learn`.
        estimator: See `learn`.
        solver: See `learn`.
        optimizer: See `learn`.
        progress: Whether to show the numbers of each step.
        on_step: Called with a row of numbers after each outer step.
        workers: See `learn`; by default as many as before. With another number it ends
            elsewhere.
        ray: See `learn`; it ends the same with it and without.
    """
    folder = RunFolder.open(path)
    given = Given(reward, policy, inner, estimator, solver, optimizer)
    setup = reopen(folder, task=task, given=given, workers=workers, ray=ray)
    with showing(progress and on_step is None, shown_steps(setup.config)) as show:
        return run(setup, folder, on_step=on_step or show)


def _loaded(source: str | Path | Demos) -> Demos:
    return _as_kept(source) if isinstance(source, Demos) else demos_lib.load(source)


def _longest(demos: Demos) -> int:
    """After how many steps the demonstrations were cut, as far as can be seen."""
    seen = int(np.max(np.asarray(demos.trajectories.lengths)))
    return max(seen, demos.provenance.horizon or 0)


def _as_kept(demos: Demos) -> Demos:
    """As they are when they are read from a folder: padded to their own length."""
    return demos_lib.from_flat(demos_lib.to_flat(demos), demos.provenance)


def _as_recorded(task: Task, demos: Demos) -> Task:
    """With the options the demonstrations were collected with, if they are of it."""
    if demos.provenance.environment != task.name or not demos.provenance.options:
        return task
    environment = demos_lib.environment_of(demos.provenance)
    return dataclasses.replace(task, environment=environment)


def _kept_demos(folder: RunFolder, config: Config) -> Demos:
    """The demonstrations that a run learned from, and no others."""
    kept = folder.path / _KEPT_DEMOS
    source = config.demos if config.demos in demos_lib.bundled else kept
    loaded = demos_lib.load(source)
    if demos_lib.content_hash(loaded) != config.demos_hash:
        raise RunError(
            f"The demonstrations in {source} are not those that the run in "
            f"{folder.path} learned from: their content has changed. Restore them, or "
            "learn again."
        )
    return loaded


def _check_given(folder: RunFolder, config: Config, given: dict[str, str]) -> None:
    """Refuses to go on with other objects than the run was given."""
    for name in sorted(set(config.given) | set(given)):
        ours, theirs = config.given.get(name), given.get(name)
        if ours == theirs:
            continue
        if theirs is None:
            problem = f"was given its own `{name}` ({_class(ours)}); give it again"
        elif ours is None:
            problem = f"was given no `{name}` of its own; leave it out"
        else:
            problem = (
                f"was given another `{name}` ({_class(ours)}, with other content than "
                f"this {_class(theirs)}); give the same again"
            )
        raise RunError(f"The run in {folder.path} {problem}.")


def _class(described: str | None) -> str:
    return str(described).partition(" ")[0]
