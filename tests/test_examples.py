"""The examples run, at toy size."""

import importlib.util
import pathlib

import jax.random as jr
import numpy as np
import pytest

from hyperirl import saving
from hyperirl.rewards import StandaloneReward, mlp_reward
from hyperirl.spaces import Discrete

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_an_environment_of_your_own(capsys):
    found = load("own_environment").main(steps=1, updates=1, budget=8192)
    assert np.isfinite(found["hard_return"]["mean"])
    assert "Parking learned by fisher: 1 outer steps" in capsys.readouterr().out


@pytest.mark.slow
def test_demonstrations_of_your_own(capsys):
    example = load("own_demonstrations")
    result = example.main(method="bc", steps=1, episodes=12)
    words = capsys.readouterr().out
    assert "observation_0" in words and "cartpole learned by bc" in words
    assert result.demos.num_episodes == 12
    observations, actions, _ = example.play(1, 200)
    assert len(observations[0]) == len(actions[0]) + 1


def test_a_learned_reward_in_another_library(tmp_path, monkeypatch):
    """Without SB3, whether or not it is installed."""
    example = load("other_library")
    monkeypatch.setattr(example.importlib.util, "find_spec", lambda name: None)
    reward = StandaloneReward(mlp_reward(4, Discrete(2), key=jr.key(0)), 0.25)
    saving.save_reward(reward, tmp_path / "reward.npz")
    learned, true = example.main(str(tmp_path / "reward.npz"))
    # A fresh network is within 0.1 of 0, and the level is paid at every step.
    assert abs(learned / true - 0.25) < 0.1
