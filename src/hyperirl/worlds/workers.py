"""Slow environments on several processes: shards of them, stepped at the same time.

The policy stays here: one compiled call chooses for all environments, and a worker gets
the actions of its shard. So a worker needs no policy, compiles nothing, and an update
sends nothing; a step costs one round trip. Chance is a number for each shard, so that
the same shards give the same results wherever they run.

A worker that dies is replaced. Its shard goes on from its last known state where that
can be set, to the bit; elsewhere its episodes are cut off there and new ones begin.
"""

import abc
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hyperirl.worlds.stepper import AbstractStepper, Ids, Stepped

Make = Callable[[int], AbstractStepper]
_MAX_DEATHS = 3  # Of the same worker over the same command.


class WorkerDied(Exception):
    """A worker is gone, with all that it held."""


class Host:
    """What runs in a worker: the shards of some steppers, by number."""

    def __init__(self, make: Make):
        """Takes what makes a stepper of so many environments."""
        self._make = make
        self._shards: dict[int, AbstractStepper] = {}

    def facts(self, number: int, num_envs: int) -> dict[str, Any]:
        """Makes a shard, and says what it can do."""
        shard = self._shards[number] = self._make(num_envs)
        names = "observation_size action_space can_restart can_start_anywhere can_save"
        return {name: getattr(shard, name) for name in names.split()}

    def call(self, number: int, name: str, *arguments: Any) -> tuple[Any, ...]:
        """What a method of a shard returns; then what is seen, and its state."""
        shard = self._shards[number]
        if name == "restart":
            ids, seed = arguments
            found = shard.restart(ids, rng=np.random.default_rng(seed))
        elif name == "step":
            found = shard.step(arguments[0], idle=arguments[1])
        else:
            found = getattr(shard, name)(*arguments)
        return found, shard.observe(), shard.save_state()


class AbstractWorker(abc.ABC):
    """A place where a host runs. Ask all of them first, then wait for the answers."""

    @abc.abstractmethod
    def ask(self, name: str, *arguments: Any) -> None:
        """Sends a call to the host."""

    @abc.abstractmethod
    def answer(self) -> Any:
        """What the last call returned; `WorkerDied` if nobody is left to say."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Starts a new host in the place of one that died."""

    def close(self) -> None:
        """Ends it."""
        return None


class Here(AbstractWorker):
    """In this process, one after the other: what the others are compared with."""

    def __init__(self, make: Make):
        """Needs no process."""
        self._make, self._host = make, Host(make)
        self._found: Any = None

    def ask(self, name: str, *arguments: Any) -> None:
        self._found = getattr(self._host, name)(*arguments)

    def answer(self) -> Any:
        return self._found

    def restart(self) -> None:
        self._host = Host(self._make)


class Crew:
    """Workers, and how often each of them had to be replaced."""

    def __init__(self, workers: Sequence[AbstractWorker]):
        """Takes workers that nobody else asks."""
        self.workers = list(workers)
        self.lives = [0] * len(self.workers)
        self.num_steppers = 0

    def replace(self, worker: int) -> None:
        """Starts a worker again."""
        self.lives[worker] += 1
        self.workers[worker].restart()

    def close(self) -> None:
        """Ends all of them."""
        for worker in self.workers:
            worker.close()


class ShardedStepper(AbstractStepper):
    """Environments in shards, one with each worker."""

    def __init__(self, crew: Crew, num_envs: int):
        """Deals the environments out evenly, in order."""
        self.num_envs, self._crew = num_envs, crew
        self._number = crew.num_steppers
        crew.num_steppers += 1
        parts = np.array_split(np.arange(num_envs), len(crew.workers))
        self._parts = [part for part in parts if len(part)]
        self._lives = [-1] * len(self._parts)  # That of the worker that made it.
        self._states: list[dict[str, np.ndarray]] = [{} for _ in self._parts]
        self._seeds = np.random.SeedSequence(0)
        facts = [self._build(shard) for shard in range(len(self._parts))][0]
        self.observation_size = facts["observation_size"]
        self.action_space = facts["action_space"]
        self.can_restart = facts["can_restart"]
        self.can_start_anywhere = facts["can_start_anywhere"]
        self.can_save = facts["can_save"]
        self._now = np.zeros((num_envs, self.observation_size))

    def _build(self, shard: int) -> dict[str, Any]:
        """Has its worker make a shard."""
        worker = self._crew.workers[shard]
        worker.ask("facts", self._number, len(self._parts[shard]))
        self._lives[shard] = self._crew.lives[shard]
        return worker.answer()

    def _call(self, calls: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Asks some shards at the same time; None: it was lost and began anew."""
        lost: set[int] = set()
        for shard, call in calls.items():
            if self._lives[shard] != self._crew.lives[shard]:
                lost.add(shard)  # It died while it worked for another stepper.
                continue
            try:
                self._crew.workers[shard].ask("call", self._number, *call)
            except WorkerDied:
                lost.add(shard)
        found = {}
        for shard in calls.keys() - lost:
            try:
                found[shard] = self._keep(shard, self._crew.workers[shard].answer())
            except WorkerDied:
                lost.add(shard)
        for shard in sorted(lost):
            found[shard] = self._redo(shard, calls[shard])
        return found

    def _keep(self, shard: int, answer: tuple[Any, ...]) -> Any:
        found, self._now[self._parts[shard]], self._states[shard] = answer
        return found

    def _redo(self, shard: int, call: tuple[Any, ...]) -> Any:
        """Does a call that was lost, with a new worker if that is gone."""
        count = len(self._parts[shard])
        fate = "go on from where they were" if self.can_save else "begin anew"
        for _ in range(_MAX_DEATHS):
            try:
                if self._lives[shard] == self._crew.lives[shard]:
                    self._crew.replace(shard)
                    warnings.warn(
                        f"Worker {shard} died and was replaced; its {count} "
                        f"environments {fate}.",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                self._build(shard)
                if self.can_save and self._states[shard]:
                    self._ask(shard, "load_state", self._states[shard])
                elif call[0] != "restart":
                    (seed,) = self._seeds.spawn(1)
                    self._ask(shard, "restart", np.arange(count), _number(seed))
                    if call[0] == "step":
                        return None
                return self._keep(shard, self._ask(shard, *call))
            except WorkerDied:
                continue
        raise RuntimeError(
            f"Worker {shard} died {_MAX_DEATHS} times over the same call, `{call[0]}`; "
            "step the environment in this process (without workers) to see why."
        )

    def _ask(self, shard: int, *call: Any) -> Any:
        worker = self._crew.workers[shard]
        worker.ask("call", self._number, *call)
        return worker.answer()

    def restart(self, ids: Ids, *, rng: np.random.Generator) -> None:
        calls, seed = {}, np.random.SeedSequence(int(rng.integers(2**63)))
        self._seeds, *seeds = seed.spawn(1 + len(self._parts))
        for shard, part in enumerate(self._parts):
            mine = np.flatnonzero(np.isin(part, ids))
            if len(mine):
                calls[shard] = "restart", mine, _number(seeds[shard])
        self._call(calls)

    def observe(self) -> np.ndarray:
        return self._now.copy()

    def step(self, actions: np.ndarray, *, idle: np.ndarray | None = None) -> Stepped:
        before = self._now.copy()
        busy = np.ones(self.num_envs, bool) if idle is None else ~idle
        calls = {
            shard: ("step", actions[part], None if idle is None else idle[part])
            for shard, part in enumerate(self._parts)
            if busy[part].any()
        }
        found = self._call(calls)
        stepped = [
            self._unmoved(before[part], shard in calls)
            if found.get(shard) is None
            else found[shard]
            for shard, part in enumerate(self._parts)
        ]
        rows = [step[:4] for step in stepped]
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
        taken = [s.taken for s in stepped]
        together = Stepped(*columns)
        if all(part is None for part in taken):
            return together
        whole = [
            np.ones(len(part), bool) if some is None else some
            for some, part in zip(taken, self._parts, strict=True)
        ]
        return together._replace(taken=np.concatenate(whole))

    def _unmoved(self, before: np.ndarray, lost: bool) -> Stepped:
        """A step that was lost: the episode is cut off where it was; or an idle one."""
        count = len(before)
        never = np.zeros(count, bool)
        return Stepped(before, np.zeros(count), never, np.full(count, lost))

    def start_at(self, ids: Ids, observations: np.ndarray) -> None:
        calls = {}
        for shard, part in enumerate(self._parts):
            mine = np.isin(ids, part)
            if mine.any():
                local = np.searchsorted(part, ids[mine])
                calls[shard] = "start_at", local, observations[mine]
        self._call(calls)

    def save_state(self) -> dict[str, np.ndarray]:
        if not self.can_save:
            return {}
        names = self._states[0].keys()
        return {
            name: np.concatenate([state[name] for state in self._states])
            for name in names
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self._call(
            {
                shard: ("load_state", {name: a[part] for name, a in state.items()})
                for shard, part in enumerate(self._parts)
            }
        )

    def close(self) -> None:
        self._crew.close()


def _number(seed: np.random.SeedSequence) -> int:
    """A seed as a plain number."""
    return int(seed.generate_state(1, np.uint64)[0])
