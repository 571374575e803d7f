"""A world that is stepped by the host, for everything that asks for a world.

From outside it is a frozen value like any other world: `act` goes on from the actors it
is given, wherever they come from, if the stepper can be saved. So a run that was killed
goes on to the bit from what it has saved of its solver. Otherwise the environments are
the state: they go on from where they are, and start afresh in a new process.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Actors, Batch
from hyperirl.policies import AbstractActor
from hyperirl.rewards import RecordedReward
from hyperirl.spaces import ActionSpace
from hyperirl.trajectories import Trajectories
from hyperirl.worlds import acting
from hyperirl.worlds.playing import Player, generator
from hyperirl.worlds.stepper import AbstractStepper

_MAX_PLAYERS = 64  # Environments that play whole episodes side by side.


class Engine:
    """Makes steppers when they are needed, and keeps them."""

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
        self.sample = self.fleet("play", num_envs or 1).stepper

    def fleet(self, use: str, num_envs: int) -> acting.Fleet:
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


class OtherStarts(eqx.Module):
    """Where else episodes may start, and how often; see `environments.OtherStarts`."""

    observations: Float[Array, "starts obs"]
    count: Int[Array, ""]  # How many of them there are; what follows is padding.
    chance: Float[Array, ""]


class SteppedWorld(AbstractWorld):
    """A world that is stepped by the host, in NumPy."""

    engine: Engine = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    starts: OtherStarts | None = None

    @property
    def name(self) -> str:
        """For people."""
        return self.engine.name

    @property
    def observation_size(self) -> int:
        return self.engine.sample.observation_size

    @property
    def action_space(self) -> ActionSpace:
        return self.engine.sample.action_space

    @property
    def is_stepped(self) -> bool:
        return True

    @property
    def has_reward(self) -> bool:
        """It is recorded; it is no function of observation and action."""
        return True

    @property
    def reward(self) -> RecordedReward:
        """What it pays."""
        return RecordedReward()

    @property
    def can_start_anywhere(self) -> bool:
        return self.engine.sample.can_start_anywhere

    @property
    def can_save(self) -> bool:
        """Whether actors hold all there is, so that a killed run goes on to the bit."""
        return self.engine.sample.can_save

    def starting_at(
        self,
        observations: Float[Array, "starts obs"],
        *,
        chance: float | Float[Array, ""],
        horizon: int,
        count: int | Int[Array, ""] | None = None,
    ) -> "SteppedWorld":
        """The same environments, often entered elsewhere, with shorter episodes."""
        if not self.can_start_anywhere:
            raise ValueError(
                f"{self.name} cannot start where it was seen; start its episodes where "
                "the task does."
            )
        count = observations.shape[0] if count is None else count
        starts = OtherStarts(
            jnp.asarray(observations),
            jnp.asarray(count, jnp.int32),
            jnp.asarray(chance, jnp.float32),
        )
        return SteppedWorld(engine=self.engine, horizon=horizon, starts=starts)

    def start(self, num_envs: int, *, key: PRNGKeyArray) -> Actors:
        """Fresh environments whose clocks are spread evenly over the horizon.

        They start together where they cannot be restarted early.
        """
        fleet = self.engine.fleet("act", num_envs)
        fleet.begin(self._starts(), rng=generator(key))
        if fleet.stepper.can_restart:
            times = np.arange(num_envs, dtype=np.int64) * self.horizon // num_envs
            fleet.times = times.astype(np.int32)
        return _freeze(fleet)

    def act(
        self, policy: AbstractActor, actors: Actors, num_steps: int, *, key
    ) -> tuple[Actors, Batch]:
        """Takes `num_steps` steps in every environment."""
        num_envs = actors.times.shape[0]
        fleet = self.engine.fleet("act", num_envs)
        noise_key, chance_key = jr.split(key)
        rng, starts = generator(chance_key), self._starts()
        if fleet.stepper.can_save:
            fleet.stepper.load_state(
                {name: np.asarray(array) for name, array in actors.states.items()}
            )
            fleet.times = np.asarray(actors.times)
        elif fleet.times is None:
            fleet.begin(starts, rng=rng)
        player = Player(policy, num_envs, num_steps, key=noise_key)
        batch = acting.act(fleet, player, num_steps, self.horizon, starts, rng=rng)
        return _freeze(fleet), batch

    def episodes(
        self,
        policy: AbstractActor,
        num_episodes: int,
        *,
        key: PRNGKeyArray,
        horizon: int | None = None,
        record_rewards: bool = True,
    ) -> Trajectories:
        """Whole episodes, with what was paid for them."""
        num_envs = self.engine.num_envs or min(num_episodes, _MAX_PLAYERS)
        fleet = self.engine.fleet("play", num_envs)
        noise_key, chance_key = jr.split(key)
        horizon = self.horizon if horizon is None else min(horizon, self.horizon)
        player = Player(policy, num_envs, min(horizon, 256), key=noise_key)
        rng, starts = generator(chance_key), self._starts()
        played = acting.play(fleet, player, num_episodes, horizon, starts, rng=rng)
        if record_rewards:
            return played
        return eqx.tree_at(lambda episodes: episodes.rewards, played, None)

    def _starts(self) -> acting.Starts | None:
        if self.starts is None:
            return None
        count = int(self.starts.count)
        observations = np.asarray(self.starts.observations)[:count]
        return acting.Starts(observations, float(self.starts.chance))


def _freeze(fleet: acting.Fleet) -> Actors:
    assert fleet.times is not None
    saved = fleet.stepper.save_state()
    states = {name: jnp.asarray(array) for name, array in saved.items()}
    return Actors(states, jnp.asarray(fleet.times))
