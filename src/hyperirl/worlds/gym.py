"""Any Gymnasium environment: one object each, or a vector environment of its own.

The first kind is stepped one environment after the other, in Python, and restarted one
by one. The second is stepped in one call; when its environments restart is its own
business, and all of Gymnasium's ways to say so are understood.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from hyperirl.worlds.spaces import reader, writer
from hyperirl.worlds.stepper import AbstractStepper, Ids, Stepped


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


class GymStepper(AbstractStepper):
    """Environments of one kind, each an object of its own."""

    def __init__(self, environments: Sequence[gymnasium.Env]):
        """Takes environments that nobody else steps."""
        self.environments = list(environments)
        self.num_envs = len(self.environments)
        self._reader = reader(self.environments[0].observation_space)
        self._writer = writer(self.environments[0].action_space)
        self.observation_size = self._reader.size
        self.action_space = self._writer.space
        self._now = np.zeros((self.num_envs, self.observation_size))

    def restart(self, ids: Ids, *, rng: np.random.Generator) -> None:
        for i in ids:
            first, _ = self.environments[i].reset(seed=_seed(rng))
            self._now[i] = self._reader.read(first, 1)[0]

    def observe(self) -> np.ndarray:
        return self._now.copy()

    def step(self, actions: np.ndarray, *, idle: np.ndarray | None = None) -> Stepped:
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        actions = self._writer.write(actions)
        busy = range(self.num_envs) if idle is None else np.flatnonzero(~idle)
        for i in busy:
            seen, rewards[i], terminated[i], cut, _ = self.environments[i].step(
                actions[i]
            )
            truncated[i] = cut and not terminated[i]
            self._now[i] = self._reader.read(seen, 1)[0]
        return Stepped(self._now.copy(), rewards, terminated, truncated)

    def close(self) -> None:
        for environment in self.environments:
            environment.close()


class VectorStepper(AbstractStepper):
    """A vector environment. It is restarted as a whole, or when an episode ends.

    - `DISABLED`: it is told which to restart, and any can be.
    - `SAME_STEP`: an episode that ends is followed by the next at once; its last
      observation is in `infos["final_obs"]`.
    - `NEXT_STEP`: the step after an end is a restart in disguise; it is not `taken`.
    """

    def __init__(self, environment: VectorEnv):
        """Takes a vector environment that nobody else steps."""
        self.environment = environment
        self.num_envs = environment.num_envs
        self._reader = reader(environment.single_observation_space)
        self._writer = writer(environment.single_action_space)
        self._mode = _autoreset_mode(environment)
        self.observation_size = self._reader.size
        self.action_space = self._writer.space
        self.can_restart = self._mode is AutoresetMode.DISABLED
        self._now = np.zeros((self.num_envs, self.observation_size))
        self._over = np.zeros(self.num_envs, bool)

    def restart(self, ids: Ids, *, rng: np.random.Generator) -> None:
        everyone = len(ids) == self.num_envs
        if everyone and not self._over.all():
            self._reset(_seed(rng), None)
        elif self._mode is AutoresetMode.DISABLED:
            mask = np.isin(np.arange(self.num_envs), ids)
            seeds = [_seed(rng) if new else None for new in mask]
            self._reset(seeds, {"reset_mask": mask})
        elif not self._over[ids].all():
            raise ValueError(
                "Some environments of a vector environment that restarts by itself "
                "cannot be restarted early; make it with autoreset_mode=DISABLED."
            )

    def _reset(self, seed: Any, options: dict | None) -> None:
        seen, _ = self.environment.reset(seed=seed, options=options)
        self._now, self._over = self._read(seen), np.zeros(self.num_envs, bool)

    def _read(self, seen) -> np.ndarray:
        # A copy: some environments hand out the array that they write to. It is not
        # changed again, so whoever asks may have it.
        return np.array(self._reader.read(seen, self.num_envs))

    def observe(self) -> np.ndarray:
        return self._now

    def step(self, actions: np.ndarray, *, idle: np.ndarray | None = None) -> Stepped:
        actions = self._writer.write(actions)
        seen, rewards, terminated, cut, infos = self.environment.step(actions)
        reached = self._now = self._read(seen)
        terminated = np.array(terminated, bool)
        truncated = np.asarray(cut, bool) & ~terminated
        ended = terminated | truncated
        taken = None
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            reached = reached.copy()
            for i in np.flatnonzero(ended):
                reached[i] = self._reader.read(infos["final_obs"][i], 1)[0]
        if self._mode is AutoresetMode.NEXT_STEP:
            taken = ~self._over
        self._over = ended
        rewards = np.asarray(rewards, np.float64)
        return Stepped(reached, rewards, terminated, truncated, taken)

    def close(self) -> None:
        self.environment.close()


def _autoreset_mode(environment: VectorEnv) -> AutoresetMode:
    mode = (environment.metadata or {}).get("autoreset_mode")
    if mode is None:
        raise ValueError(
            f"{type(environment).__name__} does not say when its environments restart; "
            "set its metadata['autoreset_mode'] to a gymnasium.vector.AutoresetMode."
        )
    return AutoresetMode(mode)


def copies(make: Callable[[], gymnasium.Env], num_envs: int) -> GymStepper:
    """As many environments as wanted."""
    return GymStepper([make() for _ in range(num_envs)])
