"""The outer loop on a tabular MDP, whose inner problem is solved exactly."""

import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hyperirl import demos
from hyperirl.learning import (
    Diverged,
    LearnConfig,
    complete,
    from_dict,
    learn,
    loop,
    paper,
    resume,
)
from hyperirl.runs import RunFolder
from hyperirl.saving import load_reward

STEPS = 12


@pytest.fixture(scope="module")
def tabular_demos(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), path)
    return str(path)


@pytest.fixture(scope="module")
def settings(tabular_demos):
    """A small run that is the same everywhere."""
    return dict(
        env="tabular",
        demos=tabular_demos,
        steps=STEPS,
        agent_episodes=16,
    )


@pytest.fixture(scope="module")
def finished(settings, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    return learn(**settings, out=out)


def arrays(tree):
    return [
        np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    ]


def test_learning_lowers_the_held_out_nll(finished):
    first, last = finished.metrics[0], finished.metrics[-1]
    assert last["best_nll_valid"] < first["nll_valid"] - 1
    assert last["best_nll_valid"] == min(row["nll_valid"] for row in finished.metrics)


def test_a_run_folder_holds_everything(finished):
    folder = RunFolder.open(finished.folder.path)
    assert [row["step"] for row in folder.metrics()] == list(range(1, STEPS + 1))
    assert folder.config["env"] == "tabular" and folder.config["inner"] == "exact"
    np.testing.assert_array_equal(
        load_reward(folder.reward_path).table, finished.reward.table
    )


def test_a_saved_reward_is_the_same_reward(finished, tmp_path):
    finished.save(tmp_path / "reward")
    loaded = load_reward(tmp_path / "reward")
    observation, action = jnp.eye(8, dtype=jnp.float32)[2], jnp.int32(1)
    assert loaded(observation, action) == finished.reward(observation, action)


def test_an_existing_folder_is_refused(finished, settings):
    with pytest.raises(ValueError, match="never overwritten"):
        learn(**settings, out=finished.folder.path)


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_arrays(finished, settings, tmp_path):
    """SIGKILL at a moment that no code chooses; the checkpoint decides."""
    out = tmp_path / "killed"
    fields = dataclasses.asdict(finished.config)
    RunFolder.create(out, fields, ["test"])
    program = (
        "import sys, hyperirl; hyperirl.resume(sys.argv[1], on_step=lambda row: "
        "print(row['step'], flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= STEPS // 2:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = resume(out)
    assert [row["step"] for row in again.metrics] == list(range(1, STEPS + 1))
    for ours, theirs in zip(
        arrays((again.reward, again.policy)),
        arrays((finished.reward, finished.policy)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    checkpoint = lambda path: (path / "checkpoint.npz").read_bytes()
    assert checkpoint(out) == checkpoint(finished.folder.path)


@pytest.fixture
def seconds_and_shares(monkeypatch):
    """Every look at the clock takes a second; what steps are told of the time."""
    ticks, shares = itertools.count(), []
    clock = types.SimpleNamespace(monotonic=lambda: float(next(ticks)))
    monkeypatch.setattr(loop, "time", clock)

    def watched(learner, state, episodes, done, step=loop.outer_step):
        shares.append(float(done))
        return step(learner, state, episodes, done)

    monkeypatch.setattr(loop, "outer_step", watched)
    return shares


def test_a_timed_run_ends_with_its_time_and_the_rate_falls_over_it(
    settings, seconds_and_shares
):
    """The first step compiles and is not counted; steps left open never end a run."""
    timed = learn(**settings | {"steps": None}, time=3.0)
    assert timed.config.steps is None
    assert [row["learned_seconds"] for row in timed.metrics] == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(seconds_and_shares, [0, 0, 1 / 3, 2 / 3], rtol=1e-6)
    assert timed.metrics[-1]["done"] == 1.0


def test_a_run_with_steps_and_a_time_ends_with_what_is_over_first(
    settings, seconds_and_shares
):
    short = learn(**settings | {"steps": 2}, time=100.0)
    assert len(short.metrics) == 2
    assert seconds_and_shares == [0.0, 0.5]


def test_a_timed_run_that_was_stopped_has_the_rest_of_its_time(
    settings, seconds_and_shares, tmp_path
):
    def interrupt(row):
        if row["step"] == 3:
            raise KeyboardInterrupt

    out = tmp_path / "timed"
    with pytest.raises(KeyboardInterrupt):
        learn(**settings | {"steps": None}, time=3.0, out=out, on_step=interrupt)
    learned = [row["learned_seconds"] for row in resume(out).metrics]
    assert learned == [0.0, 1.0, 2.0, 2.0, 3.0]  # The fourth step compiles again.
    assert len(resume(out).metrics) == 5


def test_interrupting_saves(settings, tmp_path):
    def interrupt(row):
        if row["step"] == 2:
            raise KeyboardInterrupt

    out = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        learn(**settings, out=out, on_step=interrupt)
    assert resume(out).metrics[-1]["step"] == STEPS


def test_a_hypergradient_that_is_not_finite_never_reaches_the_reward(settings):
    """An optimizer that makes NaN poisons the second step; the third sees it."""
    poison = optax.GradientTransformation(
        lambda params: jnp.zeros((), jnp.int32),
        lambda updates, state, params=None: (
            jax.tree.map(lambda u: jnp.where(state == 1, jnp.nan, 0.0) * u, updates),
            state + 1,
        ),
    )
    rows = []
    with pytest.raises(Diverged, match="in a row"):
        learn(**settings, optimizer=poison, on_step=rows.append)
    assert [row["skipped"] for row in rows[-6:]] == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("method", ["explicit", "sketch", "ml-irl"])
def test_every_method_learns(settings, method):
    result = learn(**(settings | {"method": method, "steps": 6, "damping": 1.0}))
    assert result.metrics[-1]["best_nll_valid"] < result.metrics[0]["nll_valid"]


def test_cloning_has_a_policy_and_no_reward(settings, tmp_path):
    result = learn(**(settings | {"method": "bc"}), out=tmp_path / "bc")
    assert result.reward is None
    assert (tmp_path / "bc" / "policy.npz").exists()
    with pytest.raises(ValueError, match="no reward"):
        result.save(tmp_path / "reward")


@pytest.mark.parametrize(
    "bad, words",
    [
        (dict(env="cartpol"), "no environment"),
        (dict(damping=0.0), "`damping` must be positive"),
        (dict(agent_episodes=2), "at least 4"),
        (dict(optimizer="adamm"), "no optimizer"),
        (dict(reward="quadratic"), "vectors"),
    ],
)
def test_bad_settings_get_one_sentence(settings, bad, words):
    with pytest.raises(ValueError, match=words):
        learn(**(settings | bad))


def test_the_paper_preset_keeps_what_was_chosen():
    config = complete(paper(LearnConfig(method="sketch", sketch_size=16)))
    assert (config.cross, config.optimizer, config.inner) == ("raw", "sgd", "reinforce")
    assert config.absolute_damping == 1e-3 and config.agent_episodes == 1000
    assert config.sketch_size == 16


def test_configs_survive_json():
    config = complete(LearnConfig(env="lqr"))
    again = from_dict(json.loads(json.dumps(dataclasses.asdict(config))))
    assert again == config
