"""What moves a world: environments that act without an end, or play episodes.

An engine is in this process, or dealt out to workers (`workers.ShardedEngine`). What it
does is asked for in large pieces: all steps of an update, or all episodes.
"""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from hyperirl.inner.acting import Batch
from hyperirl.policies import AbstractActor
from hyperirl.spaces import ActionSpace
from hyperirl.trajectories import Trajectories
from hyperirl.worlds import acting
from hyperirl.worlds.playing import Player, generator
from hyperirl.worlds.stepper import AbstractStepper

_MAX_PLAYERS = 64  # Environments that play whole episodes side by side.


class Facts(NamedTuple):
    """What is known of the environments."""

    observation_size: int
    action_space: ActionSpace
    can_start_anywhere: bool
    can_save: bool


class Rules(NamedTuple):
    """When episodes are cut, and where else they may start."""

    horizon: int
    starts: acting.Starts | None = None


class Paused(NamedTuple):
    """Environments in the middle of their episodes, as far as they can be saved."""

    states: dict[str, np.ndarray]  # Empty where that cannot be done.
    times: Int[np.ndarray, " envs"]


class AbstractEngine(abc.ABC):
    """Many copies of one environment, wherever they are."""

    name: str
    """For people."""
    facts: Facts
    num_envs: int | None = None
    """The only number there can be; None: any."""

    @abc.abstractmethod
    def start(self, num_envs: int, rules: Rules, *, key: PRNGKeyArray) -> Paused:
        """Begins new episodes, their clocks spread evenly over the horizon.

        They start together where they cannot be restarted early.
        """

    @abc.abstractmethod
    def act(
        self,
        policy: AbstractActor,
        paused: Paused,
        num_steps: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> tuple[Paused, Batch]:
        """Takes `num_steps` steps in every environment.

        They go on from what was saved; where that cannot be done, from where they are.
        """

    @abc.abstractmethod
    def play(
        self,
        policy: AbstractActor,
        num_episodes: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> Trajectories:
        """Plays whole episodes from their start."""


class Engine(AbstractEngine):
    """In this process. Makes steppers when they are needed, and keeps them."""

    def __init__(
        self,
        name: str,
        make: Callable[[int], AbstractStepper],
        *,
        num_envs: int | None = None,
    ):
        """Makes a first stepper, to see what it is.

        Args:
            name: For people.
            make: A stepper of so many environments.
            num_envs: The only number there can be; None: any.
        """
        self.name, self.num_envs, self._make = name, num_envs, make
        self._fleets: dict[tuple[str, int], acting.Fleet] = {}
        sample = self.sample = self._fleet("play", num_envs or 1).stepper
        self.facts = Facts(
            sample.observation_size,
            sample.action_space,
            sample.can_start_anywhere,
            sample.can_save,
        )

    def _fleet(self, use: str, num_envs: int) -> acting.Fleet:
        """Environments for one use: to act without an end, or to play episodes."""
        if self.num_envs is not None:
            if num_envs != self.num_envs:
                raise ValueError(
                    f"{self.name} has {self.num_envs} environments and cannot have "
                    f"{num_envs}; set `num_envs={self.num_envs}` in the solver."
                )
            use = "all"  # There is only one of it.
        if (use, num_envs) not in self._fleets:
            self._fleets[use, num_envs] = acting.Fleet(self._make(num_envs))
        return self._fleets[use, num_envs]

    def start(self, num_envs: int, rules: Rules, *, key: PRNGKeyArray) -> Paused:
        fleet = self._fleet("act", num_envs)
        fleet.begin(rules.starts, rng=generator(key))
        if fleet.stepper.can_restart:
            times = np.arange(num_envs, dtype=np.int64) * rules.horizon // num_envs
            fleet.times = times.astype(np.int32)
        return _pause(fleet)

    def act(
        self,
        policy: AbstractActor,
        paused: Paused,
        num_steps: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> tuple[Paused, Batch]:
        num_envs = len(paused.times)
        fleet = self._fleet("act", num_envs)
        noise_key, chance_key = jr.split(key)
        rng = generator(chance_key)
        if self.facts.can_save:
            fleet.stepper.load_state(paused.states)
            fleet.times = paused.times
        elif fleet.times is None:  # Another process began them.
            fleet.begin(rules.starts, rng=rng)
        player = Player(policy, num_envs, num_steps, key=noise_key)
        batch = acting.act(
            fleet, player, num_steps, rules.horizon, rules.starts, rng=rng
        )
        return _pause(fleet), batch

    def play(
        self,
        policy: AbstractActor,
        num_episodes: int,
        rules: Rules,
        *,
        key: PRNGKeyArray,
    ) -> Trajectories:
        num_envs = self.num_envs or min(num_episodes, _MAX_PLAYERS)
        fleet = self._fleet("play", num_envs)
        noise_key, chance_key = jr.split(key)
        player = Player(policy, num_envs, min(rules.horizon, 256), key=noise_key)
        return acting.play(
            fleet,
            player,
            num_episodes,
            rules.horizon,
            rules.starts,
            rng=generator(chance_key),
        )


def _pause(fleet: acting.Fleet) -> Paused:
    assert fleet.times is not None
    return Paused(fleet.stepper.save_state(), fleet.times)
