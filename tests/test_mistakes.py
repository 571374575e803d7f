"""Mistakes that a newcomer makes are answered by one sentence each."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import hyperirl as hi
from hyperirl import demos


def recorded(size):
    """Twelve episodes of three steps in which nothing happens."""
    return demos.from_arrays(
        observations=[np.zeros((4, size))] * 12,
        actions=[np.zeros(3, np.int32)] * 12,
    )


class Numbers(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self):  # As in the old Gym.
        return np.zeros(4, np.float32)


class Images(Numbers):
    observation_space = gym.spaces.Box(0, 255, (2, 2, 3), np.uint8)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hi.learn("CartPole-v1"), "say `gym:CartPole-v1`"),
        (lambda: hi.learn("cartpole", learningrate=1.0), "do you mean `learning_rate`"),
        (lambda: hi.learn("lqr", "cartpole"), "those of LQR are vectors of 2 numbers"),
        (lambda: hi.learn(Images, recorded(12), horizon=3), "are images, and hyperirl"),
        (lambda: hi.learn(Numbers, recorded(4), horizon=3), "takes no seed, as in the"),
        (lambda: hi.learn(str, recorded(4), horizon=3), "it made a str"),
    ],
)
def test_a_mistake_is_answered_by_a_sentence(call, sentence):
    with pytest.raises(ValueError) as caught:
        call()
    words = str(caught.value)
    assert sentence in words
    assert words[-1] in ".?" and "\n" not in words


OF_OTHER_TYPES = """
import gymnasium as gym
import hyperirl as hi

for call in (
    lambda: hi.learn("cartpole", reward=3),
    lambda: hi.learn("cartpole", reward=hi.rewards.AbstractReward),
    lambda: hi.learn("cartpole", optimizer=0.1),
    lambda: hi.learn("cartpole", [[1.0, 2.0]]),
    lambda: hi.RewardWrapper(gym.make("CartPole-v1"), 3),
):
    try:
        call()
    except ValueError as error:
        print(error)
"""


def test_so_are_things_of_another_type():
    """In a process of its own, because here types are checked at every call."""
    command = [sys.executable, "-c", OF_OTHER_TYPES]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sentences = (
        "derived from `AbstractReward`, got 3.",
        "derived from `AbstractReward`, got the class itself.",
        "derived from `GradientTransformation`, got 0.1.",
        "`hyperirl.demos.from_arrays` makes them of lists of arrays.",
        "A reward is a function of steps, got 3;",
    )
    for line, sentence in zip(said.splitlines(), sentences, strict=True):
        assert sentence in line
