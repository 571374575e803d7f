"""`hyperirl learn`, `train` and `evaluate`: what is typed is what is done."""

import json

import numpy as np
import pytest

from hyperirl import demos, exact, learning, tasks
from hyperirl.cli import main
from hyperirl.inner import true_reward
from hyperirl.problem import problem
from hyperirl.saving import load_policy


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setattr("hyperirl.cli.enable_compilation_cache", lambda: None)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "tabular.npz"
    demos.save(demos.collect("tabular", 20, seed=0), path)
    return str(path)


def settings_of(words, shown, out):
    """Of a run that was typed; cloning, which is done at once."""
    usual = ["learn", "--env", "tabular", "--demos", shown, "--method", "bc"]
    main([*usual, *words.split(), "--out", str(out)])
    return json.loads((out / "config.json").read_text())


def test_learning_has_the_settings_of_the_paper_if_they_are_asked_for(shown, tmp_path):
    ours = settings_of("--seed 3", shown, tmp_path / "ours")
    theirs = settings_of("--seed 3 --paper --damping 0.5", shown, tmp_path / "theirs")
    assert (ours["cross"], ours["agent_episodes"], ours["seed"]) == ("adjoint", 32, 3)
    assert (theirs["cross"], theirs["agent_episodes"]) == ("raw", 1000)
    assert theirs["damping"] == 0.5


def test_training_is_at_the_temperature_and_discount_that_are_given(tmp_path, capsys):
    """The exact solution, so that nothing but the problem decides."""
    path = tmp_path / "policy.npz"
    words = "train --env tabular --solver exact --temperature 0.5 --discount 0.6"
    main([*words.split(), "--out", str(path)])
    assert f"Wrote the policy to {path}" in capsys.readouterr().out.replace("\n", "")
    mdp = tasks.make("tabular").environment
    asked = exact.tabular.soft_optimal_policy(mdp, true_reward(mdp), problem(0.5, 0.6))
    table = lambda policy: policy.network.layers[0].weight
    centred = lambda x: np.asarray(x) - np.asarray(x).mean(axis=0)
    found = centred(table(load_policy(path)))
    np.testing.assert_allclose(found, centred(table(asked)), atol=1e-4)


def test_an_evaluation_is_the_one_that_was_asked_for(monkeypatch, capsys):
    asked = {}
    monkeypatch.setattr(
        learning, "evaluate", lambda run, **said: asked.update(said, run=run) or {}
    )
    main("evaluate runs/first --seeds 3 --budget 9000 --no-transfer --json".split())
    assert asked == {
        "run": asked["run"],
        "task": None,
        "seeds": 3,
        "budget": 9000,
        "transfer": False,
        "workers": None,
        "ray": False,
    }
    assert str(asked["run"]) == "runs/first"
    assert json.loads(capsys.readouterr().out) == {}
