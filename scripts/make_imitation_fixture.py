"""Writes the demonstrations by `imitation` that the tests read.

Beside each folder there is a .json file: what `imitation` itself reads from it. This
needs an environment of its own, never the one hyperirl is developed in:

    python -m venv imitation-env
    imitation-env/bin/pip install "setuptools<81" "numpy<2" "pyarrow<19" "datasets<4" \
        "gymnasium==0.29.1" "imitation==1.0.1"
    imitation-env/bin/python scripts/make_imitation_fixture.py
"""

import json
import pathlib

import gymnasium as gym
import numpy as np
from imitation.data import rollout, serialize
from imitation.data.types import Trajectory
from imitation.data.wrappers import RolloutInfoWrapper
from stable_baselines3.common.vec_env import DummyVecEnv

FIXTURES = pathlib.Path(__file__).parent.parent / "tests" / "demos" / "fixtures"


def push(observations, states, starts):
    """Pushes where the pole leans, and now and then the other way."""
    del starts
    turn = 0 if states is None else states
    right = (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(np.int64)
    return (1 - right if turn % 2 else right), turn + 1


def swing(observations, states, starts):
    """Swings by the velocity."""
    del states, starts
    return np.clip(observations[:, 2:3], -2, 2).astype(np.float32), None


def without_rewards(episode):
    """The same episode as `imitation` stores it when no reward is known."""
    return Trajectory(episode.obs, episode.acts, episode.infos, episode.terminal)


def write(name, policy, environment, steps, change):
    """Two short episodes, and what is read from them."""
    make = lambda: RolloutInfoWrapper(gym.make(environment, max_episode_steps=steps))
    made = rollout.rollout(
        policy,
        DummyVecEnv([make]),
        rollout.make_sample_until(min_episodes=2),
        rng=np.random.default_rng(0),
        unwrap=True,
        exclude_infos=False,
    )
    serialize.save(FIXTURES / name, [change(episode) for episode in made[:2]])
    read = [
        {
            field: np.asarray(getattr(episode, field)).tolist()
            for field in ("obs", "acts", "rews", "terminal")
            if hasattr(episode, field)
        }
        for episode in serialize.load(FIXTURES / name)
    ]
    (FIXTURES / f"{name}.json").write_text(json.dumps(read))


if __name__ == "__main__":
    write("imitation-cartpole", push, "CartPole-v1", 25, lambda episode: episode)
    write("imitation-pendulum", swing, "Pendulum-v1", 8, without_rewards)
