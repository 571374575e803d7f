"""`hyperirl score`."""

import dataclasses
import json

import jax.random as jr
import numpy as np
import pytest

from hyperirl import demos, saving
from hyperirl.cli import main
from hyperirl.rewards import StandaloneReward, mlp_reward
from hyperirl.runs import RunFolder
from hyperirl.spaces import Discrete


@pytest.fixture
def run(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, [])
    reward = StandaloneReward(mlp_reward(4, Discrete(2), key=jr.key(0)), 0.25)
    saving.save_reward(reward, folder.reward_path)
    return folder


def test_a_run_scores_demonstrations(run, capsys):
    main(["score", str(run.path), "cartpole", "--json"])
    found = json.loads(capsys.readouterr().out)
    lengths = np.array(demos.load("cartpole").trajectories.lengths)
    episodes = found["episodes"]
    assert found["discount"] == 0.99 and episodes["lengths"] == lengths.tolist()
    # A fresh network is within 0.03 of 0, and the level is included.
    np.testing.assert_allclose(episodes["per_step"], 0.25, atol=0.1)
    means = np.array(episodes["returns"]) / lengths
    np.testing.assert_allclose(means, episodes["per_step"], rtol=1e-5)
    assert found["mean"]["true_returns"] == pytest.approx(lengths.mean())


def test_the_discount_is_that_of_the_demonstrations(run, tmp_path, capsys):
    episodes = demos.load("cartpole")
    episodes = dataclasses.replace(
        episodes[:3], provenance=dataclasses.replace(episodes.provenance, discount=0.5)
    )
    demos.save(episodes, tmp_path / "demos.npz")
    main(["score", str(run.path), str(tmp_path / "demos.npz"), "--json"])
    assert json.loads(capsys.readouterr().out)["discount"] == 0.5


def test_a_table_is_for_people(run, capsys):
    main(["score", str(run.reward_path), "cartpole", "--discount", "0.9"])
    words = capsys.readouterr().out
    assert "discounted 0.9" in words and "episodes; `--json` shows them all" in words
    assert "true return" in words and "mean" in words


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["lqr"], "reads observations of 4 numbers|reads actions"),
        (["cartpole", "--discount", "2"], "must be in (0, 1], got 2.0"),
        (["cartpole", "--discount", "0"], "must be in (0, 1], got 0.0"),
        (["nothing"], "There are no demonstrations 'nothing'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(run, capsys, arguments, words):
    with pytest.raises(SystemExit) as caught:
        main(["score", str(run.path), *arguments])
    error = capsys.readouterr().err
    assert caught.value.code == 2
    assert any(part in error for part in words.split("|"))
