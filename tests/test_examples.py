"""The examples run, at toy size."""

import importlib.util
import json
import pathlib

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hyperirl as hi
from hyperirl import saving
from hyperirl.experiments.worker import perform
from hyperirl.hypergradient import MLIRL
from hyperirl.inner import Reinforce
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


TINY = {
    "steps": 1,
    "agent_episodes": 4,
    "inner_updates": 1,
    "adaptive": False,
    "natural": False,
    "progress": False,
}
MEAN = {"mean": 1.0, "low": 0.5, "high": 1.5, "n": 2}


@pytest.fixture(scope="module")
def learned():
    """With parts of one's own, all at once: nothing else compiles as quickly."""
    example = load("own_parts")
    return hi.learn(
        "cartpole",
        reward=example.first_reward(),
        policy=example.Linear(jnp.zeros((2, 4), jnp.float32)),
        inner=example.PolicyGradient(horizon=5),
        estimator=example.Remembering(MLIRL()),
        **TINY,
    )


def test_parts_of_your_own(learned):
    """Each of them has moved something."""
    reward, policy = learned.reward.soft, learned.policy
    assert type(reward).__name__ == "Costs" and type(policy).__name__ == "Linear"
    assert learned.metrics[0]["h_norm"] > 1e-3
    assert float(jnp.max(jnp.abs(policy.weight))) > 1e-6


@pytest.mark.slow
def test_an_environment_of_gymnasium(capsys, monkeypatch):
    """Evaluating in such an environment has its own tests, and takes long."""
    example = load("gymnasium_environment")
    names = "random_return", "expert_return", "env_return"
    evaluate = lambda result, **effort: dict.fromkeys(names, MEAN)
    monkeypatch.setattr(example.hi, "evaluate", evaluate, raising=False)
    inner = Reinforce(num_episodes=4)
    result = example.main(episodes=10, method="ml-irl", inner=inner, **TINY)
    assert result.config.env == "gym:Room-v0" and len(result.metrics) == 1
    assert "-3 degrees: off pays" in capsys.readouterr().out
    action, log_prob = example.resident(np.array([-3.0, 0.5]), np.random.default_rng(0))
    assert action == 1 and -0.01 < log_prob < 0  # It is cold.


def test_a_minari_dataset(tmp_path, capsys):
    example = load("minari_dataset")
    dataset = example.write_one(str(tmp_path))
    result = example.main(dataset, "cartpole", method="bc", steps=1, progress=False)
    assert result.demos.num_episodes == 60
    assert "60 episodes by" in capsys.readouterr().out


def test_questions_to_a_reward(learned, capsys, monkeypatch):
    """What an evaluation finds has its own tests, and takes long; here it is bad."""
    example = load("trust_a_reward")
    keys = "policy_nll floor gap_percent rank_corr env_return expert_return hard_return"
    found = dict.fromkeys(keys.split(), MEAN)
    found |= {"rank_corr_constant": 1.0, "rank_corr_untrained": 0.9}
    found["settings"] = {"budget": 1000, "usual_budget": 10**6, "seeds": 1}
    monkeypatch.setattr(example.hi, "evaluate", lambda result: found, raising=False)
    assert example.question(learned) is found
    words = capsys.readouterr().out
    assert "but: " in words and "budget" in words
    assert "rank_corr_constant   1.0" in words
    assert "angular velocity" in words


def test_a_change_of_the_dynamics(learned, monkeypatch):
    """Training is real; what was learned before is not learned again."""
    example, trained = load("transfer"), []
    monkeypatch.setattr(example.hi, "learn", lambda *_, **__: learned, raising=False)
    train = example.inner.train

    def watched(environment, reward, **how):
        trained.append((float(environment.half_length), reward))
        return train(environment, reward, **how)

    monkeypatch.setattr(example.inner, "train", watched)
    found = example.main(budget=32_768)
    assert trained == [(1.5, learned.reward.soft), (1.5, None)]
    # What stands for the clone has hardly learned anything: 45 steps, as by chance.
    chance = found["the clone, as it is"]
    assert len(found) == 4 and found["trained on the true reward"] > chance + 10


@pytest.mark.slow
def test_many_runs(tmp_path, monkeypatch):
    """All of it but the processes, which have their own tests."""

    def run_here(cells, out, *, workers, on_done, **others):
        assert workers == 2
        for cell in cells:
            perform(cell, out)
            on_done(cell, None)

    monkeypatch.setattr("hyperirl.experiments.pool.run_in_processes", run_here)
    out = tmp_path / "sweep"
    best = load("sweep").main("--workers", "2", out=str(out), steps=2, seeds=1)
    losses = {}
    for path in out.rglob("metrics.jsonl"):
        damping = json.loads((path.parent / "config.json").read_text())["damping"]
        losses[damping] = json.loads(path.read_text().splitlines()[-1])[
            "best_nll_valid"
        ]
    assert set(losses) == {0.1, 1.0, 10.0}
    assert best["damping"] == min(losses, key=losses.get)


def test_curvature_alone(capsys):
    errors = load("curvature_alone").main(rows=400, hidden=8)
    assert errors["Auto"] < 0.05 < errors["Diagonal"]
    assert "damping 0.001" in capsys.readouterr().out
