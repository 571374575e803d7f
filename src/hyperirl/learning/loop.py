"""The outer loop: what a user runs.

A run lives in a folder, and its state is there after every few steps. What follows a
checkpoint depends on the checkpoint alone, so a run that was killed and resumed ends
with the same arrays as one that was not; unless it is timed, and the clock decides.
"""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import optax

from hyperirl._jax import enable_compilation_cache
from hyperirl.cloning import clone, mean_nll
from hyperirl.demos import Demos
from hyperirl.demos.splitting import Parts, split_demos
from hyperirl.environments import AbstractEnvironment
from hyperirl.learning.config import LearnConfig, complete, from_dict
from hyperirl.learning.kept import as_kept, demos_of
from hyperirl.learning.setup import (
    check_parts,
    load_demos,
    make_environment,
    make_learner,
    make_policy,
)
from hyperirl.learning.step import LearnState, init, outer_step
from hyperirl.metrics import CloneMetrics, LoopMetrics, as_row
from hyperirl.policies import AbstractPolicy, Policy
from hyperirl.rewards import AbstractReward, standalone
from hyperirl.runs import RunFolder
from hyperirl.saving import save_policy, save_reward
from hyperirl.verdict import warnings_of

OnStep = Callable[[dict[str, Any]], None]  # Called with each row of the metrics.

CHECKPOINT_EVERY = 5  # Outer steps.
MAX_SKIPPED = 5  # Steps in a row that may fail before the run stops.
LOW_SNR = 2.0  # Below it, the number of trajectories is doubled...
MAX_EPISODES = 4  # ...up to this many times the first number.


class Diverged(ValueError):
    """A run that stopped because its numbers were not finite."""


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """What was learned, and from what it can be repeated."""

    reward: AbstractReward | None
    """The learned reward `r(observation, action)`, which stands on its own; none for
    behavioral cloning. `reward.soft` is it in the paper's convention."""
    policy: AbstractPolicy
    """The policy that goes with it."""
    config: LearnConfig
    metrics: list[dict[str, Any]]
    """A row for each outer step."""
    folder: RunFolder | None
    """Where the run is kept, if it is."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the run, in sentences; nothing if all went well."""
        problem = self.config.problem
        return warnings_of(
            self.metrics,
            temperature=float(problem.temperature),
            discount=float(problem.discount),
        )

    def __repr__(self) -> str:
        last = self.metrics[-1] if self.metrics else {}
        config = self.config
        lines = [
            f"{config.env} learned by {config.method}: {len(self.metrics)} outer "
            f"steps, {last.get('seconds', 0.0):.0f} s"
        ]
        best, floor = last.get("best_nll_valid"), last.get("floor_valid")
        if best is not None:
            against = "" if floor is None else f" (the expert's own: {floor:.1f})"
            lines.append(f"best held-out NLL {best:.1f}{against}")
        if self.folder is not None:
            lines.append(f"kept in {self.folder.path}")
        return "\n  ".join([*lines, *self.warnings])

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Writes the reward to a file that `hyperirl.load_reward` reads."""
        if self.reward is None:
            raise ValueError(
                "Behavioral cloning learns no reward, so there is none to save; learn "
                "with another method, or save the policy."
            )
        metadata = dataclasses.asdict(self.config)
        save_reward(self.reward, path, metadata=metadata, overwrite=overwrite)


def learn(
    env: str = "cartpole",
    demos: str | Demos | None = None,
    method: str = "fisher",
    *,
    seed: int = 0,
    steps: int | None = None,
    time: float | None = None,
    out: str | Path | None = None,
    optimizer: str | optax.GradientTransformation | None = None,
    on_step: OnStep | None = None,
    **settings: Any,
) -> Result:
    """Learns a reward from demonstrations.

    ```
    result = hyperirl.learn("cartpole")
    result.reward(observation, action)
    ```

    Args:
        env: Name of the environment.
        demos: Demonstrations, a file of them, or the name of bundled ones.
        method: fisher, explicit, sketch, ml-irl, exact or bc.
        seed: Decides everything random.
        steps: Outer steps; as many as fit into the time if only that is given.
        time: Learn for so many seconds, not counting compilation.
        out: A folder to keep the run in; without one it is only returned.
        optimizer: Of the reward's parameters: the name of one of Optax's, which gets
            the learning rate, schedule and clipping of the settings; or one ready made.
        on_step: Called with a row of numbers after each outer step.
        **settings: Other fields of `LearnConfig`.
    """
    fields: dict[str, Any] = dict(env=env, method=method, seed=seed)
    fields |= dict(steps=steps, time=time)
    if isinstance(demos, str):
        fields["demos"] = demos
    if isinstance(optimizer, str):
        fields["optimizer"] = optimizer
    try:
        config = complete(LearnConfig(**fields, **settings))
    except TypeError as error:
        raise ValueError(f"There is no such setting: {error}.") from error
    given = demos if isinstance(demos, Demos) else None
    check(config, given)
    folder = None
    if out is not None:
        folder = RunFolder.create(out, dataclasses.asdict(config), sys.argv)
    made = optimizer if isinstance(optimizer, optax.GradientTransformation) else None
    return run(config, folder, given=given, optimizer=made, on_step=on_step)


def resume(
    path: str | Path,
    *,
    on_step: OnStep | None = None,
    given: Demos | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Result:
    """Goes on with a run where its last checkpoint is; the end is the same.

    Args:
        path: The folder of the run.
        on_step: Called with a row of numbers after each outer step.
        given: The demonstrations, to be sure that they are the run's own.
        optimizer: The optimizer, if the run was given one.
    """
    folder = RunFolder.open(path)
    config = from_dict(folder.config)
    return run(config, folder, given=given, optimizer=optimizer, on_step=on_step)


def check(config: LearnConfig, given: Demos | None = None) -> None:
    """One sentence if a run cannot start, before anything is created for it."""
    loaded = load_demos(config) if given is None else given
    environment = make_environment(config, loaded)
    parts = split_demos(loaded, config.seed)
    check_parts(config, environment, parts)


def run(
    config: LearnConfig,
    folder: RunFolder | None = None,
    *,
    given: Demos | None = None,
    optimizer: optax.GradientTransformation | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """Does what a complete config says, from the folder's checkpoint if it has one."""
    with contextlib.nullcontext() if folder is None else folder.lock():
        return _run(config, folder, given, optimizer, on_step)


def _run(
    config: LearnConfig,
    folder: RunFolder | None,
    given: Demos | None,
    optimizer: optax.GradientTransformation | None,
    on_step: OnStep | None,
) -> Result:
    enable_compilation_cache()
    if folder is not None:
        loaded = demos_of(folder, given)
    else:
        loaded = load_demos(config) if given is None else as_kept(given)
    environment = make_environment(config, loaded)
    parts = split_demos(loaded, config.seed)
    expert_nll = parts.valid.expert_nll
    floor = None if expert_nll is None else float(expert_nll.mean())
    if config.method == "bc":
        return _clone(config, environment, folder, parts, floor, on_step)
    learner, reward, policy = make_learner(config, environment, parts, optimizer)
    episodes = config.agent_episodes or 32
    state = init(learner, reward, policy, episodes)
    rows: list[dict[str, Any]] = []
    if folder is not None:
        state, step = folder.load_checkpoint(state) or (state, 0)
        folder.truncate_metrics(step)  # What came after it is done again.
        rows = folder.metrics()
    start = time.monotonic() - (rows[-1]["seconds"] if rows else 0.0)
    learned = rows[-1].get("learned_seconds", 0.0) if rows else 0.0
    compiled: set[int] = set()  # Numbers of trajectories; each is another program.
    try:
        while (done := _share_done(config, int(state.step), learned)) < 1:
            began, episodes = time.monotonic(), int(state.agent_episodes)
            state, measured = outer_step(learner, state, episodes, jnp.float32(done))
            jax.block_until_ready(measured)
            took, seconds = time.monotonic() - began, time.monotonic() - start
            learned += took if episodes in compiled else 0.0
            compiled.add(episodes)
            now_done = _share_done(config, int(state.step), learned)
            row = as_row(measured, LoopMetrics(took, seconds, learned, now_done, floor))
            rows.append(row)
            if folder is not None:
                folder.append_metrics(row)
            if on_step is not None:
                on_step(row)
            _stop_if_lost(state, folder)
            state = _more_episodes(config, state)
            if folder is not None and int(state.step) % CHECKPOINT_EVERY == 0:
                folder.save_checkpoint(state, int(state.step))
    except KeyboardInterrupt:
        _save(config, environment, folder, state)
        raise
    _save(config, environment, folder, state)
    best = state.best
    reward = _standing_alone(config, environment, best.reward)
    return Result(reward, best.policy, config, rows, folder)


def _standing_alone(
    config: LearnConfig, environment: AbstractEnvironment, reward: AbstractReward
) -> AbstractReward:
    """What is handed out: with the level that the entropy had beside it."""
    temperature = config.problem.temperature
    return standalone(reward, environment.action_space, temperature)


def _share_done(config: LearnConfig, step: int, learned: float) -> float:
    """How much of a run is over, by its steps or by its time, whichever is more."""
    by_steps = step / config.steps if config.steps is not None else 0.0
    by_time = learned / config.time if config.time is not None else 0.0
    return min(max(by_steps, by_time), 1.0)


def _more_episodes(config: LearnConfig, state: LearnState) -> LearnState:
    """Twice the trajectories when the running signal-to-noise ratio is low."""
    first = config.agent_episodes or 32
    episodes = int(state.agent_episodes)
    if not config.adaptive or not float(state.snr) < LOW_SNR:
        return state
    if 2 * episodes > MAX_EPISODES * first:
        return state
    return dataclasses.replace(
        state,
        agent_episodes=jnp.asarray(2 * episodes, jnp.int32),
        snr=jnp.asarray(jnp.nan, jnp.float32),
    )


def _stop_if_lost(state: LearnState, folder: RunFolder | None) -> None:
    if int(state.skipped) < MAX_SKIPPED:
        return
    if folder is not None:
        folder.save_checkpoint(state, int(state.step))
    kept = "" if folder is None else f" The last good state is in {folder.path}."
    raise Diverged(
        f"The hypergradient or the loss was not finite in {MAX_SKIPPED} outer steps in "
        f"a row, the last of them step {int(state.step)}, so the run was stopped."
        f"{kept} Lower the learning rate, or raise the damping."
    )


def _save(
    config: LearnConfig,
    environment: AbstractEnvironment,
    folder: RunFolder | None,
    state: LearnState,
) -> None:
    """The checkpoint, and the best reward and policy as files of their own.

    Before the first step there is nothing worth saving.
    """
    if folder is None or not int(state.step):
        return
    folder.save_checkpoint(state, int(state.step))
    metadata, best = dataclasses.asdict(config), state.best
    assert isinstance(best.policy, Policy)  # As `make_policy` made it.
    reward = _standing_alone(config, environment, best.reward)
    save_reward(reward, folder.reward_path, metadata=metadata, overwrite=True)
    save_policy(best.policy, folder.policy_path, metadata=metadata, overwrite=True)


def _clone(
    config: LearnConfig,
    environment: AbstractEnvironment,
    folder: RunFolder | None,
    parts: Parts,
    floor: float | None,
    on_step: OnStep | None,
) -> Result:
    """Behavioral cloning: a policy, no reward, one row."""
    start = time.monotonic()
    train, valid = parts.train.trajectories, parts.valid.trajectories
    policy_key, clone_key = jr.split(jr.key(config.seed))
    policy = make_policy(config, environment, train, key=policy_key)
    policy, _ = clone(policy, train, valid, key=clone_key)
    nll = mean_nll(policy, valid).block_until_ready()
    seconds = time.monotonic() - start
    row = as_row(
        CloneMetrics(jnp.int32(1), nll, nll, mean_nll(policy, train)),
        LoopMetrics(seconds, seconds, seconds, 1.0, floor),
    )
    if folder is not None:
        folder.truncate_metrics(0)
        folder.append_metrics(row)
        metadata = dataclasses.asdict(config)
        save_policy(policy, folder.policy_path, metadata=metadata, overwrite=True)
    if on_step is not None:
        on_step(row)
    return Result(None, policy, config, [row], folder)
