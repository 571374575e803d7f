"""Any policy in any environment of Gymnasium, step by step."""

import gymnasium as gym
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, record, recording

lean = lambda observation: int(observation[2] + observation[3] > 0)


def replay(environment, seed, actions):
    """What the environment shows for these actions, and how it ends."""
    env = gym.make(**environment)
    seen, rewards = [env.reset(seed=seed)[0]], []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), rewards, terminated, truncated


def test_an_episode_is_what_the_environment_shows():
    made = record(gym.make("CartPole-v1"), lambda _: 1, 1, seed=5)
    flat = demos.to_flat(made)
    seen, rewards, terminated, _ = replay({"id": "CartPole-v1"}, 5, flat["actions"])
    assert terminated and flat["terminated"].tolist() == [True]
    np.testing.assert_array_equal(flat["observations"], seen)  # The last one, too.
    np.testing.assert_array_equal(flat["rewards"], rewards)
    assert made.provenance.environment == "CartPole-v1"
    assert made.provenance.horizon == 500 and made.provenance.seed == 5
    assert made.expert_log_probs is None and made.provenance.missing == ()


def test_a_time_limit_is_no_termination():
    env = gym.make("CartPole-v1", max_episode_steps=4)
    made = record(env, lean, 2, seed=0)
    assert made.trajectories.lengths.tolist() == [4, 4]
    assert not made.trajectories.terminated.any()
    assert made.provenance.horizon == 4


def test_the_same_seed_records_the_same():
    env = gym.make("Pendulum-v1", max_episode_steps=5)
    sample = lambda _: env.action_space.sample()
    hashes = [demos.content_hash(record(env, sample, 2, seed=s)) for s in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_episodes_differ():
    made = record(gym.make("CartPole-v1", max_episode_steps=3), lean, 2, seed=0)
    first, second = np.asarray(made.trajectories.observations[:, 0])
    assert np.any(first != second)


def test_log_probabilities_are_kept():
    act = lambda _: (1, np.float32(-0.5))
    made = record(gym.make("CartPole-v1", max_episode_steps=3), act, 2, seed=0)
    np.testing.assert_array_equal(made.expert_nll, [1.5, 1.5])


def test_the_answer_of_stable_baselines_is_understood():
    predict = lambda observation: (np.array(lean(observation)), None)
    made = record(gym.make("CartPole-v1", max_episode_steps=3), predict, 1, seed=0)
    assert made.expert_log_probs is None


def test_actions_are_recorded_as_executed():
    env = {"id": "Pendulum-v1", "max_episode_steps": 3}
    made = demos.to_flat(record(gym.make(**env), lambda _: np.array([9.0]), 1, seed=0))
    assert made["actions"].tolist() == [[2], [2], [2]]
    seen, rewards, *_ = replay(env, 0, made["actions"])
    np.testing.assert_array_equal(made["observations"], seen)
    np.testing.assert_allclose(made["rewards"], rewards, rtol=1e-6)


def test_choices_as_observations_become_vectors():
    env = gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=3)
    made = record(env, lambda _: 2, 1, seed=0)
    assert made.trajectories.observations.shape == (1, 4, 16)
    assert made.trajectories.observations[0].argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert made.provenance.options == {"is_slippery": False, "map_name": "4x4"}


BAD = {
    "none": ("CartPole-v1", lambda _: 1, 0, "Cannot record 0 episodes"),
    "no choice": ("CartPole-v1", lambda _: 2, 1, "returned 2 as an action"),
    "a fraction": ("CartPole-v1", lambda _: 0.5, 1, "returned 0.5 as an action"),
    "two choices": ("CartPole-v1", lambda _: [0, 1], 1, "one of Discrete"),
    "text": ("CartPole-v1", lambda _: "left", 1, "returned left as an action"),
    "NaN": ("Pendulum-v1", lambda _: np.array([np.nan]), 1, "as an action"),
    "too long": ("Pendulum-v1", lambda _: np.zeros(2), 1, "as an action"),
    "no number": ("CartPole-v1", lambda _: (1, "x"), 1, "'x' beside the action"),
    "a hidden state": (
        "CartPole-v1",
        lambda _: (1, np.zeros(3)),
        1,
        "beside the action",
    ),
    "impossible": ("CartPole-v1", lambda _: (1, -np.inf), 1, "one finite number"),
    "clipped": (
        "Pendulum-v1",
        lambda _: (np.array([3.0]), -1.0),
        1,
        "beyond the bounds",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_answers_get_one_sentence(case):
    environment, act, episodes, message = BAD[case]
    env = gym.make(environment, max_episode_steps=3)
    with pytest.raises(DemosError, match=message) as caught:
        record(env, act, episodes, seed=0)
    assert "\n" not in str(caught.value)


def test_an_episode_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(recording, "_MAX_STEPS", 10)
    with pytest.raises(DemosError, match="has not ended after 10 steps"):
        record(gym.make("Pendulum-v1"), lambda _: np.zeros(1), 1, seed=0)


def test_other_actions_than_choices_and_vectors_are_refused():
    env = gym.make("CartPole-v1")
    env.action_space = gym.spaces.MultiDiscrete([2, 2])
    with pytest.raises(DemosError, match="choices or vectors are needed"):
        record(env, lambda _: 0, 1, seed=0)


def test_observations_of_any_length_are_refused():
    env = gym.make("CartPole-v1")
    env.observation_space = gym.spaces.Sequence(gym.spaces.Discrete(2))
    with pytest.raises(DemosError, match="vectors of one length"):
        record(env, lambda _: 0, 1, seed=0)
