"""The outer loop.

A run lives in a folder, and its state is there after every few steps. What follows a
checkpoint depends on the checkpoint alone, so a run that was killed and resumed ends
with the same arrays as one that was not; unless it is timed, and the clock decides.
"""

import collections
import contextlib
import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from hyperirl._jax import enable_compilation_cache
from hyperirl.cloning import clone, mean_nll
from hyperirl.learning.config import Config, shown_steps
from hyperirl.learning.learner import Learner, LearnState, init
from hyperirl.learning.looking import Look
from hyperirl.learning.result import Result
from hyperirl.learning.settling import WINDOW, has_settled
from hyperirl.learning.setup import (
    Setup,
    make_learner,
    make_ranking,
    standing_alone,
)
from hyperirl.learning.step import outer_step, renewed
from hyperirl.metrics import CloneMetrics, LoopMetrics, as_row
from hyperirl.runs import RunFolder
from hyperirl.saving import save_policy, save_reward

OnStep = Callable[[dict[str, Any]], None]  # Called with each row of the metrics.

CHECKPOINT_EVERY = 5  # Outer steps.
MAX_SKIPPED = 5  # Steps in a row that may fail before the run stops.


class Diverged(ValueError):
    """A run that stopped because its numbers were not finite."""


class Stopped(KeyboardInterrupt):
    """A run that was interrupted: whether what it had is saved."""

    def __init__(self, saved: bool):
        super().__init__()
        self.saved = saved


def run(
    setup: Setup, folder: RunFolder | None = None, *, on_step: OnStep | None = None
) -> Result:
    """Does what was set up, from the folder's checkpoint if it has one."""
    enable_compilation_cache()
    with contextlib.nullcontext() if folder is None else folder.lock():
        if setup.config.method == "bc":
            return _clone(setup, folder, on_step)
        return _learn(setup, folder, on_step)


def _learn(setup: Setup, folder: RunFolder | None, on_step: OnStep | None) -> Result:
    config = setup.config
    look = _prepared_look(setup)
    learner, floor = make_learner(setup), _floor(setup)
    state = init(learner, setup.reward, setup.policy, config.agent_episodes)
    rows: list[dict[str, Any]] = []  # Held only where no folder holds them.
    last: dict[str, Any] = {}
    recent = collections.deque[float | None](maxlen=2 * WINDOW)
    if folder is not None:
        state, step = folder.load_checkpoint(state) or (state, 0)
        folder.truncate_metrics(step)  # What came after it is done again.
        for last in folder.rows():
            recent.append(last["nll_valid"])
    start = time.monotonic() - (last.get("seconds") or 0.0)
    learned = last.get("learned_seconds") or 0.0
    compiled: set[int] = set()  # Numbers of trajectories; each is another program.
    try:
        while (done := _share_done(config, int(state.step), learned)) < 1:
            if config.until_settled and has_settled(recent):
                break
            began, episodes = time.monotonic(), int(state.agent_episodes)
            before = state.reward
            state, found, agent = outer_step(
                learner, renewed(learner, state), episodes, jnp.float32(done)
            )
            if (looks := look()) is not None:
                found = looks(found, before, agent)
            jax.block_until_ready(found)
            took, seconds = time.monotonic() - began, time.monotonic() - start
            learned += took if episodes in compiled else 0.0
            compiled.add(episodes)
            now_done = _share_done(config, int(state.step), learned)
            row = as_row(found, LoopMetrics(took, seconds, learned, now_done, floor))
            recent.append(row["nll_valid"])
            if folder is None:
                rows.append(row)
            else:
                folder.append_metrics(row)
            if on_step is not None:
                on_step(row)
            _stop_if_lost(state, folder)
            state = _more_episodes(learner, config, state)
            if folder is not None and int(state.step) % CHECKPOINT_EVERY == 0:
                folder.save_checkpoint(state, int(state.step))
    except KeyboardInterrupt:
        raise Stopped(_save(setup, folder, state)) from None
    _save(setup, folder, state)
    reward = standing_alone(setup, state.best.reward)
    rows = rows if folder is None else folder.metrics()
    return Result(
        reward, state.best.policy, config, rows, setup.task, setup.demos, folder
    )


def _prepared_look(setup: Setup) -> Callable[[], Look | None]:
    """`_look`, made in a thread while the first step is compiled on another core.

    Not in a world that is stepped by the host: both would step it.
    """
    if setup.environment.is_stepped:
        look = _look(setup)
        return lambda: look
    return ThreadPoolExecutor(1).submit(_look, setup).result


def _look(setup: Setup) -> Look | None:
    ranking = make_ranking(setup)
    if ranking is None:
        return None
    return Look(setup.environment, ranking, setup.config.problem.temperature)


def _floor(setup: Setup) -> float | None:
    """The expert's own NLL on the held-out episodes, if it is known."""
    expert_nll = setup.parts.valid.expert_nll
    return None if expert_nll is None else float(expert_nll.mean())


def _share_done(config: Config, step: int, learned: float) -> float:
    """How much of a run is over, by its steps or by its time, whichever is more."""
    steps = shown_steps(config)
    by_steps = 0.0 if steps is None else step / steps
    return min(max(by_steps, learned / config.time), 1.0)


def _more_episodes(learner: Learner, config: Config, state: LearnState) -> LearnState:
    """Twice the trajectories when the running signal-to-noise ratio is low."""
    episodes = int(state.agent_episodes)
    most = config.agent_episodes * 2**learner.most_doublings
    if not config.adaptive or not float(state.snr) < learner.low_snr:
        return state
    if 2 * episodes > most:
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
        f"The hypergradient, the loss or the reward was not finite in {MAX_SKIPPED} "
        f"outer steps in a row, the last of them step {int(state.step)}, so the run "
        f"was stopped.{kept} Lower the learning rate, or raise the damping."
    )


def _save(setup: Setup, folder: RunFolder | None, state: LearnState) -> bool:
    """The checkpoint, and the best reward and policy as files of their own.

    Returns whether there was anything to save: before the first step there is not.
    """
    if folder is None or not int(state.step):
        return False
    folder.save_checkpoint(state, int(state.step))
    metadata, best = setup.config.to_json(), state.best
    reward = standing_alone(setup, best.reward)
    save_reward(reward, folder.reward_path, metadata=metadata, overwrite=True)
    save_policy(best.policy, folder.policy_path, metadata=metadata, overwrite=True)
    return True


def _clone(setup: Setup, folder: RunFolder | None, on_step: OnStep | None) -> Result:
    """Behavioral cloning: a policy, no reward, one row."""
    start, config = time.monotonic(), setup.config
    train, valid = (part.trajectories for part in setup.parts[:2])
    clone_key = jr.split(jr.key(config.seed))[1]
    policy, _ = clone(setup.policy, train, valid, key=clone_key)
    nll = mean_nll(policy, valid).block_until_ready()
    seconds = time.monotonic() - start
    row = as_row(
        CloneMetrics(jnp.int32(1), nll, nll, mean_nll(policy, train)),
        LoopMetrics(seconds, seconds, seconds, 1.0, _floor(setup)),
    )
    if folder is not None:
        folder.truncate_metrics(0)
        folder.append_metrics(row)
        metadata = config.to_json()
        save_policy(policy, folder.policy_path, metadata=metadata, overwrite=True)
    if on_step is not None:
        on_step(row)
    return Result(None, policy, config, [row], setup.task, setup.demos, folder)
