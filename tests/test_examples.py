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


# Small settings that all examples which learn on CartPole share, so that programs are
# compiled once for all of them.
TINY = {
    "steps": 1,
    "agent_episodes": 4,
    "inner_updates": 1,
    "policy_hidden": (4,),
    "reward_hidden": (4,),
    "critic_units": 4,
    "adaptive": False,
    "progress": False,
}


@pytest.mark.slow
def test_an_environment_of_gymnasium(capsys):
    example = load("gymnasium_environment")
    result = example.main(episodes=10, budget=8192, **TINY)
    assert result.config.env == "gym:Room-v0" and len(result.metrics) == 1
    words = capsys.readouterr().out
    assert "-3 degrees: off pays" in words and "env_return" in words
    action, log_prob = example.resident(np.array([-3.0, 0.5]), np.random.default_rng(0))
    assert action == 1 and -0.01 < log_prob < 0  # It is cold.


@pytest.mark.slow
def test_a_minari_dataset(tmp_path, capsys):
    example = load("minari_dataset")
    dataset = example.write_one(str(tmp_path))
    result = example.main(dataset, "cartpole", **TINY)
    assert result.demos.num_episodes == 60
    assert "60 episodes by ppo" in capsys.readouterr().out.lower()


@pytest.mark.slow
def test_questions_to_a_reward(tmp_path, capsys, monkeypatch):
    example = load("trust_a_reward")
    effort = {"seeds": 1, "budget": 8192, "transfer": False, "progress": False}
    whole = example.question
    monkeypatch.setattr(example, "question", lambda result: whole(result, **effort))
    found = example.main(str(tmp_path / "run"), **TINY)
    words = capsys.readouterr().out
    assert "but: " in words  # One step, and so small a budget, cannot be trusted.
    assert abs(found["rank_corr_constant"] - 1) < 1e-6
    assert "angular velocity" in words
    assert (tmp_path / "run/report.html").exists()


@pytest.mark.slow
def test_a_change_of_the_dynamics():
    found = load("transfer").main(budget=8192, **TINY)
    assert len(found) == 4 and all(1 <= number <= 500 for number in found.values())
