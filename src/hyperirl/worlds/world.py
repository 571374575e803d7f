"""A world that is stepped by the host, for everything that asks for a world.

From outside it is a frozen value like any other world: `act` goes on from the actors it
is given, wherever they come from, if the stepper can be saved. So a run that was killed
goes on to the bit from what it has saved of its solver. Otherwise the environments are
the state: they go on from where they are, and start afresh in a new process.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.environments import AbstractWorld
from hyperirl.inner.acting import Actors, Batch
from hyperirl.policies import AbstractActor
from hyperirl.rewards import RecordedReward
from hyperirl.spaces import ActionSpace
from hyperirl.trajectories import Trajectories
from hyperirl.worlds import acting
from hyperirl.worlds.engine import AbstractEngine, Paused, Rules


class OtherStarts(eqx.Module):
    """Where else episodes may start, and how often; see `environments.OtherStarts`."""

    observations: Float[Array, "starts obs"]
    count: Int[Array, ""]  # How many of them there are; what follows is padding.
    chance: Float[Array, ""]


class SteppedWorld(AbstractWorld):
    """A world that is stepped by the host, in NumPy."""

    # Not compared: where it is stepped is no part of what it is.
    engine: AbstractEngine = eqx.field(static=True, compare=False)
    horizon: int = eqx.field(static=True)
    starts: OtherStarts | None = None

    @property
    def name(self) -> str:
        """For people."""
        return self.engine.name

    @property
    def observation_size(self) -> int:
        return self.engine.facts.observation_size

    @property
    def action_space(self) -> ActionSpace:
        return self.engine.facts.action_space

    @property
    def is_stepped(self) -> bool:
        return True

    @property
    def num_envs(self) -> int | None:
        return self.engine.num_envs

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
        return self.engine.facts.can_start_anywhere

    @property
    def can_save(self) -> bool:
        """Whether actors hold all there is, so that a killed run goes on to the bit."""
        return self.engine.facts.can_save

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
        return _frozen(self.engine.start(num_envs, self._rules(), key=key))

    def act(
        self, policy: AbstractActor, actors: Actors, num_steps: int, *, key
    ) -> tuple[Actors, Batch]:
        """Takes `num_steps` steps in every environment."""
        states = {name: np.asarray(array) for name, array in actors.states.items()}
        paused, batch = self.engine.act(
            policy,
            Paused(states, np.asarray(actors.times)),
            num_steps,
            self._rules(),
            key=key,
        )
        return _frozen(paused), batch

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
        rules = self._rules(horizon)
        played = self.engine.play(policy, num_episodes, rules, key=key)
        if record_rewards:
            return played
        return eqx.tree_at(lambda episodes: episodes.rewards, played, None)

    def _rules(self, horizon: int | None = None) -> Rules:
        horizon = self.horizon if horizon is None else min(horizon, self.horizon)
        if self.starts is None:
            return Rules(horizon)
        count = int(self.starts.count)
        observations = np.asarray(self.starts.observations)[:count]
        chance = float(self.starts.chance)
        return Rules(horizon, acting.Starts(observations, chance))


def _frozen(paused: Paused) -> Actors:
    states = {name: jnp.asarray(array) for name, array in paused.states.items()}
    return Actors(states, jnp.asarray(paused.times))
