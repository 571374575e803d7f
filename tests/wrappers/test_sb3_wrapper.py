"""Stable-Baselines3's environments that pay a learned reward.

Where it is installed the tests use it, elsewhere a stand-in with the few methods that
matter: the wrapper is never left untested.
"""

import sys
import types

import gymnasium
import numpy as np
import pytest
from wrapper_cases import Recorder, cartpole_reward

REWARD = cartpole_reward()
NUM = 3


class StandInVecEnv:
    """Steps environments as SB3's DummyVecEnv does: those that end reset at once."""

    def __init__(self, makers):
        self.envs = [make() for make in makers]
        self.num_envs = len(self.envs)
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space
        self.seeds = [None] * self.num_envs

    def seed(self, seed):
        self.seeds = [seed + i for i in range(self.num_envs)]

    def reset(self):
        starts = zip(self.envs, self.seeds, strict=True)
        return np.stack([env.reset(seed=seed)[0] for env, seed in starts])

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        seen, rewards, dones, infos = [], [], [], []
        for env, action in zip(self.envs, self.actions, strict=True):
            observation, reward, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                info["terminal_observation"] = observation
                observation, _ = env.reset()
            seen.append(observation)
            rewards.append(reward)
            dones.append(terminated or truncated)
            infos.append(info)
        return np.stack(seen), np.array(rewards), np.array(dones), infos


class StandInWrapper:
    def __init__(self, venv):
        self.venv, self.num_envs = venv, venv.num_envs

    def seed(self, seed):
        self.venv.seed(seed)

    def step(self, actions):
        self.step_async(actions)
        return self.step_wait()


class StandInCallback:
    def __init__(self):
        self.logger = None


@pytest.fixture
def sb3(monkeypatch):
    """The wrapper's class, and that of the environments to wrap."""
    try:
        from stable_baselines3.common.vec_env import DummyVecEnv
    except ImportError:
        DummyVecEnv = StandInVecEnv
        for name, values in {
            "stable_baselines3": {},
            "stable_baselines3.common": {},
            "stable_baselines3.common.callbacks": {"BaseCallback": StandInCallback},
            "stable_baselines3.common.vec_env": {"VecEnvWrapper": StandInWrapper},
        }.items():
            module = types.ModuleType(name)
            vars(module).update(values)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, "hyperirl.wrappers.sb3", raising=False)
    from hyperirl.wrappers import VecEnvRewardWrapper

    yield VecEnvRewardWrapper, DummyVecEnv
    if DummyVecEnv is StandInVecEnv:  # Else others would see the stand-in.
        sys.modules.pop("hyperirl.wrappers.sb3", None)


def played(sb3, reward, num_steps=60, **options):
    """What was seen first, and every step after it."""
    wrapper, dummy = sb3
    venv = wrapper(
        dummy([lambda: gymnasium.make("CartPole-v1")] * NUM), reward, **options
    )
    venv.seed(0)
    first, rng, steps = venv.reset().copy(), np.random.default_rng(0), []
    for _ in range(num_steps):
        actions = rng.integers(0, 2, NUM)
        seen, rewards, dones, infos = venv.step(actions)
        steps.append((actions, seen.copy(), rewards, dones, infos))
    return venv, first, steps


def test_every_step_is_paid_for_what_was_seen_before_it(sb3):
    _, before, steps = played(sb3, REWARD)
    for actions, seen, rewards, _, infos in steps:
        expected = REWARD(before, actions)
        np.testing.assert_allclose(rewards, expected, rtol=1e-5, atol=1e-6)
        assert [info["original_env_rew"] for info in infos] == [1.0] * NUM
        before = seen
    assert sum(dones.sum() for *_, dones, _ in steps) > 3


def test_a_function_sees_the_last_observation_of_an_episode(sb3):
    recorder = Recorder()
    _, before, steps = played(sb3, recorder)
    for call, (actions, seen, _, dones, infos) in zip(
        recorder.calls, steps, strict=True
    ):
        last = [
            info["terminal_observation"] if done else after
            for info, done, after in zip(infos, dones, seen, strict=True)
        ]
        for found, expected in zip(call, (before, actions, last, dones), strict=True):
            np.testing.assert_array_equal(found, expected)
        before = seen


def test_what_episodes_were_paid_is_logged(sb3):
    venv, _, steps = played(sb3, lambda s, a, n, d: np.ones(len(s)), scale=0.5)
    lengths, expected = np.zeros(NUM), []
    for *_, dones, _ in steps:
        lengths += 1
        expected += (0.5 * lengths[dones]).tolist()
        lengths[dones] = 0
    assert list(venv.episode_rewards) == expected and len(expected) > 3
    logged = {}
    callback = venv.make_log_callback()
    logger = types.SimpleNamespace(record=logged.__setitem__)
    if isinstance(callback, StandInCallback):
        callback.logger = logger
    else:
        callback.model = types.SimpleNamespace(logger=logger)
    callback._on_rollout_start()
    assert logged == {"rollout/ep_rew_wrapped_mean": np.mean(expected)}
