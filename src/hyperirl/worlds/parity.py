"""How many steps of a batch of robots differ from Gymnasium's, in any bit."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from hyperirl.worlds.mujoco import MujocoStepper
from hyperirl.worlds.robots import ROBOTS


@dataclasses.dataclass
class Parity:
    """What was compared, and how much of it was not equal."""

    steps: int = 0
    resets: int = 0
    terminations: int = 0
    different_observations: int = 0
    different_rewards: int = 0
    different_terminations: int = 0
    different_resets: int = 0

    @property
    def mismatches(self) -> int:
        """In all."""
        different = self.different_observations + self.different_rewards
        return different + self.different_terminations + self.different_resets


def compare(
    name: str, num_envs: int, num_steps: int, *, seed: int = 0, **options: Any
) -> Parity:
    """Steps a batch of robots and as many environments of Gymnasium side by side.

    Both get the same actions, half of them beyond their bounds, and the same generators
    for their resets.

    Args:
        name: Of the environment.
        num_envs: How many copies.
        num_steps: Of each.
        seed: Of actions and resets.
        **options: Of the environment.
    """
    stepper = MujocoStepper(ROBOTS[name](**options), num_envs)
    twins = [gymnasium.make(name, **options) for _ in range(num_envs)]
    rng, found = np.random.default_rng(seed), Parity()

    def reset(i: int) -> None:
        chance = int(rng.integers(2**31))
        first, _ = twins[i].reset(seed=chance)
        generator, _ = seeding.np_random(chance)
        stepper.restart(np.array([i]), rng=generator)
        found.resets += 1
        found.different_resets += not np.array_equal(stepper.observe()[i], first)

    for i in range(num_envs):
        reset(i)
    box = stepper.box
    low, high = np.float32(box.low), np.float32(box.high)
    for _ in range(num_steps):
        actions = (1.5 * high * rng.standard_normal((num_envs, box.size))).astype(
            np.float32
        )
        ours = stepper.step(actions)
        for i, twin in enumerate(twins):
            seen, reward, over, cut, _ = twin.step(np.clip(actions[i], low, high))
            found.steps += 1
            found.terminations += bool(over)
            equal = np.array_equal(ours.observations[i], seen)
            found.different_observations += not equal
            found.different_rewards += float(ours.rewards[i]) != float(reward)
            found.different_terminations += bool(ours.terminated[i]) != bool(over)
            if over or cut:
                reset(i)
    return found
