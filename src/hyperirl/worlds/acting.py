"""Acting on the host: what `inner.acting` and `rollout` do in a compiled program.

The batches and trajectories are the same, so solvers learn with the same code from
both. The true rewards travel with them: a step cannot be paid for once it is over.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from hyperirl.inner.acting import Batch
from hyperirl.trajectories import Trajectories
from hyperirl.worlds.playing import Player
from hyperirl.worlds.stepper import AbstractStepper, Ids, Stepped


class Starts:
    """Where else episodes may start: at one of these observations, with some chance."""

    def __init__(self, observations: np.ndarray, chance: float):
        """Takes one observation a row."""
        self.observations, self.chance = np.asarray(observations, np.float64), chance

    def draw(
        self, ids: Ids, *, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of the environments start elsewhere, and where."""
        ids = ids[rng.random(len(ids)) < self.chance]
        rows = rng.integers(len(self.observations), size=len(ids))
        return ids, self.observations[rows]


class Fleet:
    """Environments in the middle of their episodes, with their clocks."""

    def __init__(self, stepper: AbstractStepper):
        """Takes a stepper that nobody else steps."""
        self.stepper = stepper
        self.times: Int[np.ndarray, " envs"] | None = None  # None: never started.

    def restart(
        self, ids: Ids, starts: Starts | None, *, rng: np.random.Generator
    ) -> None:
        """Begins new episodes in some environments."""
        self.stepper.restart(ids, rng=rng)
        if starts is not None:
            elsewhere, observations = starts.draw(ids, rng=rng)
            if len(elsewhere):
                self.stepper.start_at(elsewhere, observations)

    def begin(self, starts: Starts | None, *, rng: np.random.Generator) -> None:
        """Begins new episodes everywhere."""
        self.restart(np.arange(self.stepper.num_envs), starts, rng=rng)
        self.times = np.zeros(self.stepper.num_envs, np.int32)

    def observe(self) -> np.ndarray:
        """What is seen now, as policies read it."""
        return self.stepper.observe().astype(np.float32)

    def step(
        self, actions: np.ndarray, horizon: int, idle: np.ndarray | None = None
    ) -> Stepped:
        """One step of all, cut off where the horizon is reached.

        An environment that cannot be restarted early goes on until it ends by itself.
        """
        assert self.times is not None
        stepped = self.stepper.step(actions, idle=idle)
        if not self.stepper.can_restart:
            return stepped
        late = ~stepped.terminated & (self.times + 1 >= horizon)
        return stepped._replace(truncated=stepped.truncated | late)

    def go_on(
        self,
        stepped: Stepped,
        over: Bool[np.ndarray, " envs"],
        starts: Starts | None,
        *,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Restarts what is over, and says what is seen then."""
        assert self.times is not None
        taken = 1 if stepped.taken is None else stepped.taken
        self.times = self.times + taken  # Not in place: others may hold them.
        ids = np.flatnonzero(over)
        if not len(ids):
            return stepped.observations.astype(np.float32)
        self.times[ids] = 0
        self.restart(ids, starts, rng=rng)
        return self.observe()


def act(
    fleet: Fleet,
    player: Player,
    num_steps: int,
    horizon: int,
    starts: Starts | None,
    *,
    rng: np.random.Generator,
) -> Batch:
    """Takes `num_steps` steps in every environment.

    Where restarts cost a step, environments that restarted less often go on until all
    have taken as many; their surplus is forgotten.
    """
    rows, num_envs = [], fleet.stepper.num_envs
    counts, everyone = np.zeros(num_envs, int), np.ones(num_envs, bool)
    seen = fleet.observe()
    while len(rows) < num_steps or counts.min() < num_steps:
        actions = player(seen)
        times = fleet.times
        stepped = fleet.step(actions, horizon)
        taken = everyone if stepped.taken is None else stepped.taken
        rows.append((seen, actions, *stepped[:4], times, taken))
        counts += taken
        over = stepped.terminated | stepped.truncated
        seen = fleet.go_on(stepped, over, starts, rng=rng)
    *columns, taken = (np.stack(column) for column in zip(*rows, strict=True))
    if not taken.all():  # For each environment its own first steps.
        early = taken & (np.cumsum(taken, axis=0) <= num_steps)
        envs, steps = np.nonzero(early.T)
        first = (steps * num_envs + envs).reshape(num_envs, num_steps).T
        columns = [x.reshape(-1, *x.shape[2:])[first] for x in columns]
    observations, actions, reached, rewards, terminated, truncated, times = columns
    return Batch(
        observations=jnp.asarray(observations),
        actions=jnp.asarray(actions),
        next_observations=jnp.asarray(reached, jnp.float32),
        terminated=jnp.asarray(terminated),
        truncated=jnp.asarray(truncated),
        times=jnp.asarray(times),
        rewards=jnp.asarray(rewards, jnp.float32),
    )


def play(
    fleet: Fleet,
    player: Player,
    num_episodes: int,
    horizon: int,
    starts: Starts | None,
    *,
    rng: np.random.Generator,
) -> Trajectories:
    """Plays whole episodes: each environment every so many of them, in turn.

    How many an environment plays does not depend on how long they last, so that short
    episodes are not drawn more often than long ones.
    """
    num_envs = fleet.stepper.num_envs
    fleet.begin(starts, rng=rng)
    shape, seen = (num_episodes, horizon), fleet.observe()
    observations = np.zeros((num_episodes, horizon + 1, seen.shape[1]), np.float32)
    mask, terminated = np.zeros(shape, bool), np.zeros(num_episodes, bool)
    rewards, actions = np.zeros(shape, np.float32), None
    turns = np.arange(num_envs)  # Which episode each of them is playing...
    waiting = np.zeros(num_envs, bool)  # ...unless it is to be cut, and goes on.
    while (turns < num_episodes).any():
        chosen = player(seen)
        if actions is None:
            actions = np.zeros((*shape, *chosen.shape[1:]), chosen.dtype)
        idle = turns >= num_episodes
        assert fleet.times is not None
        stepped = fleet.step(chosen, horizon, idle)
        taken = ~idle & ~waiting
        if stepped.taken is not None:
            taken &= stepped.taken
        episodes, times = turns[taken], fleet.times[taken]
        observations[episodes, times] = seen[taken]
        observations[episodes, times + 1] = stepped.observations[taken]
        actions[episodes, times], rewards[episodes, times] = (
            chosen[taken],
            stepped.rewards[taken],
        )
        mask[episodes, times] = True
        terminated[episodes] = stepped.terminated[taken]
        over = stepped.terminated | stepped.truncated
        cut = ~over & (fleet.times + 1 >= horizon)
        turns[taken & (over | cut)] += num_envs
        waiting = (waiting | cut) & ~over
        seen = fleet.go_on(stepped, over, starts, rng=rng)
        left = turns < num_episodes
        if left.any() and waiting[left].all():  # Or some would wait for ever.
            fleet.begin(starts, rng=rng)
            seen, waiting = fleet.observe(), np.zeros(num_envs, bool)
    assert actions is not None
    arrays = observations, actions, mask, terminated, rewards
    return Trajectories(*map(jnp.asarray, arrays))
