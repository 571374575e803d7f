"""Slow environments on several processes: each worker has an engine and a shard.

The policy is sent once an update. A worker acts with it in its shard for all steps of
the update, then sends back what happened. Chance is a key for each shard, so that the
same shards give the same results wherever they run.

A worker that dies is replaced, and what it was doing is done again: to the bit, unless
it acted in environments whose state cannot be set. Those begin new episodes.
"""

import abc
import functools
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from hyperirl.inner.acting import Batch
from hyperirl.policies import AbstractActor
from hyperirl.trajectories import Trajectories
from hyperirl.worlds.engine import AbstractEngine, Facts, Paused, Rules

MOST_WORKERS = 1024
_MAX_DEATHS = 3  # Of the same worker over the same call.


class WorkerDied(Exception):
    """A worker is gone, with all that it held."""


class Slot:
    """Stands for an array in a policy on its way."""


class Packed(NamedTuple):
    """A policy on its way: its arrays, and all else, which seldom changes."""

    arrays: list[np.ndarray]
    frame: bytes

    def policy(self) -> AbstractActor:
        """As it was; nothing is compiled again for one that differs in arrays only."""
        arrays = iter(self.arrays)
        fill = lambda leaf: jnp.asarray(next(arrays)) if leaf is Slot else leaf
        return jax.tree.map(fill, _frame(self.frame))


def pack(policy: AbstractActor) -> Packed:
    """Makes a policy ready to be sent."""
    arrays = [np.asarray(x) for x in jax.tree.leaves(policy) if eqx.is_array(x)]
    frame = jax.tree.map(lambda x: Slot if eqx.is_array(x) else x, policy)
    return Packed(arrays, cloudpickle.dumps(frame))


@functools.lru_cache(maxsize=16)
def _frame(pickled: bytes) -> AbstractActor:
    return cloudpickle.loads(pickled)


class Host:
    """What runs in a worker."""

    def __init__(self, make: bytes, path: Sequence[str] = ()):
        """Takes what makes the engine, pickled, and where modules are looked for."""
        self._make, self._path = make, path
        self._engine: AbstractEngine | None = None

    def do(self, name: str, *arguments: Any) -> tuple[Any, str | None]:
        """What a call returned, or how it failed: an error is not a death."""
        try:
            if self._engine is None:
                sys.path += [place for place in self._path if place not in sys.path]
                self._engine = cloudpickle.loads(self._make)()
            return getattr(self, f"_{name}")(self._engine, *arguments), None
        except Exception:
            return None, traceback.format_exc()

    def _facts(self, engine: AbstractEngine) -> Facts:
        return engine.facts

    def _start(self, engine: AbstractEngine, num_envs, rules, key) -> Paused:
        return engine.start(num_envs, rules, key=jr.wrap_key_data(key))

    def _act(self, engine: AbstractEngine, packed, paused, num_steps, rules, key):
        policy, key = packed.policy(), jr.wrap_key_data(key)
        paused, batch = engine.act(policy, paused, num_steps, rules, key=key)
        return paused, jax.tree.map(np.asarray, batch)

    def _play(self, engine: AbstractEngine, packed, num_episodes, rules, key):
        policy, key = packed.policy(), jr.wrap_key_data(key)
        played = engine.play(policy, num_episodes, rules, key=key)
        return jax.tree.map(np.asarray, played)


class AbstractWorker(abc.ABC):
    """A place where a host runs. Ask all of them first, then wait for the answers."""

    @abc.abstractmethod
    def ask(self, name: str, *arguments: Any) -> None:
        """Sends a call to the host; never fails."""

    @abc.abstractmethod
    def answer(self) -> tuple[Any, str | None]:
        """What `Host.do` returned; `WorkerDied` if nobody is left to say."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Starts a new host in the place of one that died."""


class Here(AbstractWorker):
    """In this process, one after the other: what the others are compared with."""

    def __init__(self, make: bytes):
        """Needs no process."""
        self._make = make
        self.restart()

    def ask(self, name: str, *arguments: Any) -> None:
        self._found = self._host.do(name, *arguments)

    def answer(self) -> tuple[Any, str | None]:
        return self._found

    def restart(self) -> None:
        self._host = Host(self._make)


class ShardedEngine(AbstractEngine):
    """Environments in shards, one with each worker."""

    def __init__(self, name: str, workers: Sequence[AbstractWorker]):
        """Takes workers that nobody else asks, and asks one what it has."""
        self.name, self.workers = name, list(workers)
        self._deaths = 0
        self.facts = self._ask({0: ("facts",)})[0]

    def _shares(self, number: int) -> dict[int, np.ndarray]:
        """Deals so many things out evenly, in order; who gets none is left out."""
        shares = np.array_split(np.arange(number), len(self.workers))
        return {i: share for i, share in enumerate(shares) if len(share)}

    def _ask(self, calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        """Asks some workers at the same time. What was lost is done again."""
        for i, call in calls.items():
            self.workers[i].ask(*call)
        answers = {i: self._answer(i, call) for i, call in calls.items()}
        for _, failed in answers.values():
            if failed is not None:
                raise RuntimeError(f"An environment failed in a worker:\n{failed}")
        return [found for found, _ in answers.values()]

    def _answer(self, i: int, call: tuple[Any, ...]) -> tuple[Any, str | None]:
        for _ in range(_MAX_DEATHS):
            try:
                return self.workers[i].answer()
            except WorkerDied:
                self._replace(i, call)
                self.workers[i].ask(*call)
        raise RuntimeError(
            f"Worker {i} died {_MAX_DEATHS} times over the same call, `{call[0]}`; "
            "step the environment in this process (without workers) to see why."
        )

    def _replace(self, i: int, call: tuple[Any, ...]) -> None:
        self._deaths += 1
        self.workers[i].restart()
        new = call[0] == "act" and not self.facts.can_save
        fate = (
            "its environments begin new episodes"
            if new
            else "what it was doing is done again"
        )
        warnings.warn(
            f"Worker {i} died and was replaced; {fate} (deaths so far: "
            f"{self._deaths}).",
            RuntimeWarning,
            stacklevel=2,
        )

    def start(self, num_envs: int, rules: Rules, *, key: PRNGKeyArray) -> Paused:
        calls = {
            i: ("start", len(share), rules, _of_shard(key, i))
            for i, share in self._shares(num_envs).items()
        }
        return _joined_states(self._ask(calls))

    def act(
        self,
        policy: AbstractActor,
        paused: Paused,
        num_steps: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> tuple[Paused, Batch]:
        packed, calls = pack(policy), {}
        for i, share in self._shares(len(paused.times)).items():
            mine = jax.tree.map(lambda x, share=share: x[share], paused)
            calls[i] = "act", packed, mine, num_steps, rules, _of_shard(key, i)
        states, batches = zip(*self._ask(calls), strict=True)
        return _joined_states(states), _joined(batches, axis=1)

    def play(
        self,
        policy: AbstractActor,
        num_episodes: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> Trajectories:
        packed = pack(policy)
        calls = {
            i: ("play", packed, len(share), rules, _of_shard(key, i))
            for i, share in self._shares(num_episodes).items()
        }
        return _joined(self._ask(calls), axis=0)


def _of_shard(key: PRNGKeyArray, i: int) -> np.ndarray:
    return np.asarray(jr.key_data(jr.fold_in(key, i)))


def _joined_states(parts: Sequence[Paused]) -> Paused:
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


def _joined(parts: Sequence[PyTree], *, axis: int) -> Any:
    join = lambda *arrays: jnp.asarray(np.concatenate(arrays, axis))
    return jax.tree.map(join, *parts)
