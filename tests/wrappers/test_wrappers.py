"""Gymnasium's environments, single and vector, that pay a learned reward."""

import subprocess
import sys

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from wrapper_cases import Recorder, cartpole_reward

from hyperirl.rewards import AbstractReward, TableReward
from hyperirl.wrappers import RewardWrapper, VectorRewardWrapper

REWARD = cartpole_reward()
NUM = 3


def cartpole():
    return gymnasium.make("CartPole-v1")


def test_a_step_is_paid_for_what_was_seen_before_it():
    env, plain = RewardWrapper(cartpole(), REWARD), cartpole()
    seen, _ = env.reset(seed=0)
    plain.reset(seed=0)
    paid, expected = [], []
    for action in (0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1):
        expected.append(float(REWARD(seen, action)))
        seen, reward, terminated, truncated, info = env.step(action)
        other, true, *ends, _ = plain.step(action)
        paid.append(reward)
        assert isinstance(reward, float)
        assert info["original_env_rew"] == true == 1.0
        np.testing.assert_array_equal(seen, other)
        assert [terminated, truncated] == ends
        if terminated:
            break
    assert terminated and np.std(expected) > 0.01
    np.testing.assert_allclose(paid, expected, rtol=1e-5, atol=1e-6)


def test_rewards_are_scaled_shifted_and_then_clipped():
    plain = RewardWrapper(cartpole(), REWARD)
    other = RewardWrapper(cartpole(), REWARD, shift=-1.0, scale=2.0, clip=0.3)
    plain.reset(seed=0)
    other.reset(seed=0)
    paid = np.array([[env.step(1)[1] for _ in range(8)] for env in (plain, other)])
    np.testing.assert_allclose(
        paid[1], np.clip(2 * paid[0] - 1.0, -0.3, 0.3), rtol=1e-6
    )
    clipped = np.isclose(np.abs(paid[1]), 0.3)
    assert clipped.any() and not clipped.all()


def test_the_first_step_of_the_next_episode_is_paid():
    env = RewardWrapper(cartpole(), lambda state, *_: np.ones(len(state)))
    env.reset(seed=0)
    while not env.step(1)[2]:
        pass
    env.reset(seed=1)
    assert env.step(1)[1] == 1.0


def test_a_reset_after_a_truncation_is_not_paid():
    envs = gymnasium.make_vec(
        "CartPole-v1", 2, vectorization_mode="sync", max_episode_steps=3
    )
    env = VectorRewardWrapper(envs, lambda state, *_: np.ones(len(state)))
    env.reset(seed=0)
    paid = [env.step(np.array([0, 1]))[1].tolist() for _ in range(5)]
    assert paid == [[1, 1], [1, 1], [1, 1], [0, 0], [1, 1]]


def test_a_limit_is_one_from_below_too():
    pays = lambda state, action, *_: np.where(action == 1, 5.0, -5.0)
    env = RewardWrapper(cartpole(), pays, clip=0.3)
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (0, 1)] == [-0.3, 0.3]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"scale": 0.0}, "scaled by a positive one, got shift=0.0 and scale=0.0"),
        ({"scale": float("nan")}, "scaled by a positive one"),
        ({"shift": float("inf")}, "shifted by a finite number"),
        ({"clip": -1.0}, "`clip` is the largest reward paid, got -1.0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        RewardWrapper(cartpole(), REWARD, **options)


def test_a_function_sees_what_came_next_and_whether_it_was_the_end():
    recorder = Recorder()
    env = RewardWrapper(cartpole(), recorder)
    seen, _ = env.reset(seed=0)
    terminated = False
    while not terminated:
        following, reward, terminated, _, _ = env.step(1)
        state, action, next_state, done = recorder.calls[-1]
        np.testing.assert_array_equal(state, [seen])
        np.testing.assert_array_equal(next_state, [following])
        assert action.tolist() == [1] and done.tolist() == [terminated]
        assert reward == pytest.approx(seen[0] + 10 + 100 * following[0], rel=1e-5)
        seen = following


def test_a_step_that_only_resets_is_paid_nothing():
    env = RewardWrapper(gymnasium.wrappers.Autoreset(cartpole()), REWARD)
    env.reset(seed=0)
    over = False
    while not over:
        over = env.step(1)[2]
    first, reward, *_ = env.step(1)
    assert reward == 0
    assert env.step(0)[1] == pytest.approx(float(REWARD(first, 0)), rel=1e-5)


def vector(mode):
    return gymnasium.make_vec(
        "CartPole-v1",
        num_envs=NUM,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode, "copy": False},
    )


def played(mode, reward, num_steps=60):
    """A vector environment's steps: what it gave, and what the plain one gave."""
    env, plain = VectorRewardWrapper(vector(mode), reward), vector(mode)
    seen = [env.reset(seed=0)[0].copy()]
    plain.reset(seed=0)
    rng, steps = np.random.default_rng(0), []
    for _ in range(num_steps):
        actions = rng.integers(0, 2, NUM)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        expected = plain.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(infos["original_env_rew"], expected[1])
        np.testing.assert_array_equal(terminated, expected[2])
        assert infos["_original_env_rew"].all()
        steps.append((actions, rewards, terminated | truncated, infos))
        seen.append(observations.copy())
    return seen, steps


def test_after_an_end_the_next_step_is_paid_nothing():
    seen, steps = played(AutoresetMode.NEXT_STEP, REWARD)
    resting, rests = np.zeros(NUM, bool), 0
    for before, (actions, rewards, done, infos) in zip(seen[:-1], steps, strict=True):
        expected = np.where(resting, 0, REWARD(before, actions))
        np.testing.assert_allclose(rewards, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(infos["original_env_rew"], ~resting)
        rests += resting.sum()
        resting = done
    assert rests > 3


def test_environments_that_reset_in_the_same_step_are_paid_for_every_step():
    recorder = Recorder()
    seen, steps = played(AutoresetMode.SAME_STEP, REWARD)
    played(AutoresetMode.SAME_STEP, recorder)
    ends = 0
    for i, (actions, rewards, done, infos) in enumerate(steps):
        np.testing.assert_allclose(
            rewards, REWARD(seen[i], actions), rtol=1e-5, atol=1e-6
        )
        state, action, next_state, ended = recorder.calls[i]
        np.testing.assert_array_equal(state, seen[i])
        np.testing.assert_array_equal(action, actions)
        np.testing.assert_array_equal(ended, done)
        for j in range(NUM):
            last = infos["final_obs"][j] if done[j] else seen[i + 1][j]
            np.testing.assert_array_equal(next_state[j], last)
        ends += done.sum()
    assert ends > 3


def test_the_built_in_vector_environment_is_paid_too():
    env = gymnasium.make_vec(
        "CartPole-v1", num_envs=NUM, vectorization_mode="vector_entry_point"
    )
    env = VectorRewardWrapper(env, REWARD)
    seen, _ = env.reset(seed=0)
    resting = np.zeros(NUM, bool)
    for _ in range(40):
        expected = np.where(resting, 0, REWARD(seen.copy(), np.ones(NUM, int)))
        seen, rewards, terminated, truncated, _ = env.step(np.ones(NUM, int))
        np.testing.assert_allclose(rewards, expected, rtol=1e-5, atol=1e-6)
        resting = terminated | truncated


class Ends(gymnasium.Env):
    """Nothing but spaces."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def test_states_that_are_numbers_are_read_as_one_hot():
    table = jnp.arange(6.0).reshape(3, 2)
    space = spaces.Discrete(3, start=5, seed=0)
    env = RewardWrapper(Ends(space, spaces.Discrete(2, start=-1)), TableReward(table))
    state, _ = env.reset()
    assert env.step(-1)[1] == table[state - 5, 0]


@pytest.mark.parametrize(
    "observation_space, action_space, words",
    [
        (spaces.Box(-1, 1, (3,)), spaces.Discrete(2), "of 4 numbers, got shape"),
        (spaces.Box(-1, 1, (4,)), spaces.Discrete(3), "integers from 0 to 1"),
        (spaces.Box(-1, 1, (4,)), spaces.Box(-1, 1, (1,)), r"of shape \(1,\)"),
        (spaces.Dict({}), spaces.Discrete(2), "Box or a Discrete space"),
        (spaces.Box(-1, 1, (4,)), spaces.MultiDiscrete([2, 2]), "Box or a Discrete"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(
    observation_space, action_space, words
):
    with pytest.raises(ValueError, match=words):
        RewardWrapper(Ends(observation_space, action_space), REWARD)


def test_observations_of_several_axes_are_flattened():
    env = Ends(spaces.Box(-1, 1, (2, 2), seed=0), spaces.Discrete(2))
    env = RewardWrapper(env, REWARD)
    seen, _ = env.reset()
    expected = float(REWARD(seen.reshape(4), 1))
    assert env.step(1)[1] == pytest.approx(expected, rel=1e-5)


class Own(AbstractReward):
    def value(self, observation, action):
        return observation[0] - action.astype(observation.dtype)


def test_a_reward_of_ones_own_class_can_be_paid():
    env = RewardWrapper(cartpole(), Own())
    seen, _ = env.reset(seed=0)
    assert env.step(1)[1] == pytest.approx(seen[0] - 1, rel=1e-5)


def test_a_function_must_give_one_number_for_each_step():
    env = RewardWrapper(cartpole(), lambda *step: np.zeros((1, 1)))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"one number for each of 1 steps, got shape"):
        env.step(0)


def test_stable_baselines3_is_not_imported_unasked():
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "import hyperirl.wrappers\n"
        "try:\n    hyperirl.wrappers.VecEnvRewardWrapper\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs Stable-Baselines3, which is not installed here" in done.stdout
