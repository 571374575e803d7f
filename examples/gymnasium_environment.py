"""A Gymnasium environment of your own: no JAX, no class of ours.

A heater keeps a room warm. Run it: `python examples/gymnasium_environment.py`.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import hyperirl as hi


class Room(gym.Env):
    """Observed are the degrees above the wish, and the cold outside."""

    observation_space = spaces.Box(-20.0, 20.0, (2,), np.float32)
    action_space = spaces.Discrete(2)  # Heater off, heater on.

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.off = self.np_random.uniform(-3.0, 3.0)
        self.cold = self.np_random.uniform(0.2, 0.8)
        return self._seen(), {}

    def step(self, action):
        self.off += 1.0 * action - self.cold + 0.1 * self.np_random.normal()
        return self._seen(), -abs(self.off), False, False, {}

    def _seen(self):
        return np.array([self.off, self.cold], np.float32)


gym.register("Room-v0", Room, max_episode_steps=50)  # Episodes must end.


def resident(observation: np.ndarray, chance: np.random.Generator) -> tuple[int, float]:
    """Heats if it is too cold, mostly; says how likely that choice was."""
    heat = 1 / (1 + np.exp(3.0 * observation[0]))
    action = int(chance.random() < heat)
    return action, float(np.log(heat if action else 1 - heat))


def main(episodes: int = 60, budget: int = 100_000, **options) -> hi.Result:
    """Records a resident, learns what it wants, and trains a thermostat on that."""
    chance = np.random.default_rng(0)
    act = lambda observation: resident(observation, chance)
    env = gym.make("Room-v0")
    demos = hi.demos.record(env, act, episodes, seed=0, expert="a resident")
    result = hi.learn("gym:Room-v0", demos, **options)
    print(result)
    for off in (-3.0, 0.0, 3.0):
        pays = [float(result.reward(np.array([off, 0.5]), heat)) for heat in (0, 1)]
        print(f"{off:+.0f} degrees: off pays {pays[0]:+.3f}, on pays {pays[1]:+.3f}")
    found = hi.evaluate(result, seeds=1, budget=budget, transfer=False)
    for name in ("random_return", "expert_return", "env_return"):
        print(f"{name:14} {found[name]['mean']:8.1f}")
    return result


if __name__ == "__main__":
    main(steps=20)
