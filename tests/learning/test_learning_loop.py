"""The outer loop on a tabular MDP, whose inner problem is solved exactly."""

import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import types
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from learning_setups import config_of

from hyperirl import demos, tasks
from hyperirl.demos.splitting import split_demos
from hyperirl.environments import CartPole, Tabular
from hyperirl.inner import PPO
from hyperirl.learning import (
    Diverged,
    create_folder,
    from_json,
    learn,
    loop,
    reopen,
    resume,
    set_up,
)
from hyperirl.learning.config import ANY_NUMBER
from hyperirl.options import Options, Solver
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
        task="tabular",
        demos=tabular_demos,
        steps=STEPS,
        agent_episodes=16,
        progress=False,
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


def test_the_floor_is_the_experts_own_nll_on_the_episodes_of_the_selection(finished):
    parts = split_demos(finished.demos, 0)
    floors = [float(part.expert_nll.mean()) for part in parts[1:]]
    assert finished.metrics[0]["floor_valid"] == pytest.approx(floors[0])
    assert floors[0] != pytest.approx(floors[1])


def test_a_run_folder_holds_everything(finished):
    folder = RunFolder.open(finished.folder.path)
    assert [row["step"] for row in folder.metrics()] == list(range(1, STEPS + 1))
    assert folder.config["env"] == "tabular" and folder.config["inner"] == "exact"
    np.testing.assert_array_equal(
        load_reward(folder.reward_path).soft.table, finished.reward.soft.table
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
    options = Options(steps=STEPS, agent_episodes=16)
    create_folder(set_up("tabular", settings["demos"], options), out, ["test"])
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
    assert timed.config.steps == ANY_NUMBER
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


def test_an_update_that_is_not_finite_never_reaches_the_reward(settings, tmp_path):
    """The optimizer makes NaN from the second step on; the first is what is kept."""
    poison = optax.GradientTransformation(
        lambda params: jnp.zeros((), jnp.int32),
        lambda updates, state, params=None: (
            jax.tree.map(lambda u: jnp.where(state >= 1, jnp.nan, -0.1) * u, updates),
            state + 1,
        ),
    )
    rows, out = [], tmp_path / "poisoned"
    with pytest.raises(Diverged, match="in a row"):
        learn(**settings, optimizer=poison, on_step=rows.append, out=out)
    assert [row["skipped"] for row in rows] == [0, 1, 1, 1, 1, 1]
    with np.load(out / "checkpoint.npz") as arrays:
        names = [name for name in arrays.files if ".reward.table" in name]
        assert names and all(np.isfinite(arrays[name]).all() for name in names)


@pytest.mark.parametrize(
    "method",
    [
        "explicit",
        "sketch",
        "ml-irl",
        "soft-bellman",
        "nhgd",
        "parl",
        "penalty",
        "matching",
        "max-ent",
    ],
)
def test_every_method_learns(settings, method):
    result = learn(**(settings | {"method": method, "steps": 6, "damping": 1.0}))
    assert result.metrics[-1]["best_nll_valid"] < result.metrics[0]["nll_valid"]


def test_cloning_has_a_policy_and_no_reward(settings, tmp_path):
    result = learn(**(settings | {"method": "bc"}), out=tmp_path / "bc")
    assert result.reward is None
    assert (tmp_path / "bc" / "policy.npz").exists()
    with pytest.raises(ValueError, match="no reward"):
        result.save(tmp_path / "reward")


@pytest.mark.parametrize("solver", get_args(Solver))
def test_every_curvature_solver_can_be_used_in_learning(settings, solver):
    asked = {"solver": solver, "steps": 3, "sketch_size": 8, "damping": 1.0}
    result = learn(**(settings | asked))
    assert result.config.solver == solver
    assert result.metrics[-1]["best_nll_valid"] < result.metrics[0]["nll_valid"]


def test_another_solver_is_really_used(settings):
    """The identity has no curvature, so its first step goes elsewhere."""
    first = lambda solver: learn(**(settings | {"solver": solver, "steps": 2})).metrics
    assert first("identity")[1]["nll_valid"] != first("auto")[1]["nll_valid"]


def test_what_is_handed_out_has_the_level_of_the_entropy(finished):
    """`alpha log |A|` on every step; the paper's convention is `.soft`."""
    observation = jnp.eye(8, dtype=jnp.float32)[2]
    added = finished.reward(observation, 1) - finished.reward.soft(observation, 1)
    np.testing.assert_allclose(added, 0.1 * np.log(3), rtol=1e-5)
    again = load_reward(finished.folder.reward_path)
    assert again(observation, 1) == finished.reward(observation, 1)


def test_without_a_true_reward_the_same_is_learned_to_the_bit(finished, settings):
    class Unpaid(Tabular):
        @property
        def has_reward(self):
            return False

    task = tasks.make("tabular")
    mdp = task.environment
    unpaid = Unpaid(mdp.transitions, mdp.rewards, mdp.initial, mdp.horizon)
    blind = learn(**settings | {"task": dataclasses.replace(task, environment=unpaid)})
    assert not {"rank_corr", "true_return"} & set(blind.metrics[-1])
    for ours, theirs in zip(
        arrays((blind.reward, blind.policy)),
        arrays((finished.reward, finished.policy)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_cartpole_without_its_true_reward_learns_the_same_to_the_bit():
    class Unpaid(CartPole):
        @property
        def has_reward(self):
            return False

    task = tasks.make("cartpole")
    unpaid = dataclasses.replace(task, environment=Unpaid())
    small = dict(steps=2, agent_episodes=4, adaptive=False, progress=False)
    small["inner"] = PPO(num_envs=4, num_steps=32, num_minibatches=2)
    paid, blind = (learn(world, task.demos, **small) for world in (task, unpaid))
    assert "true_return" in paid.metrics[-1]
    assert not {"rank_corr", "true_return"} & set(blind.metrics[-1])
    for ours, theirs in zip(
        arrays((blind.reward, blind.policy)),
        arrays((paid.reward, paid.policy)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_run_keeps_the_demonstrations_it_was_given(settings, tmp_path):
    """Not those of the same name; also if they were never in a file."""
    out, given = tmp_path / "given", demos.load(settings["demos"])[np.arange(30)]
    asked = settings | {"demos": given, "steps": 2}
    learn(**asked, out=out)
    kept = reopen(RunFolder.open(out)).demos
    assert demos.content_hash(kept) == demos.content_hash(given)
    assert resume(out).metrics[-1]["step"] == 2


def test_other_demonstrations_than_the_runs_own_are_refused(settings, tmp_path):
    out, shown = tmp_path / "changed", demos.load(settings["demos"])
    learn(**(settings | {"steps": 2}), out=out)
    demos.save(shown[np.arange(20)], out / "demos.npz", overwrite=True)
    with pytest.raises(ValueError, match="not those that the run"):
        resume(out)


@pytest.mark.parametrize(
    "bad", [dict(discount=1.0), dict(demos="nowhere.npz"), dict(reward="quadratic")]
)
def test_a_start_that_was_refused_leaves_nothing_behind(settings, bad, tmp_path):
    with pytest.raises(ValueError):
        learn(**(settings | bad), out=tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_stopping_before_the_first_step_writes_no_reward(
    settings, tmp_path, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "outer_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(**settings, out=tmp_path / "early")
    assert not (tmp_path / "early" / "reward.npz").exists()


def test_a_result_prints_as_a_summary(finished):
    text = repr(finished)
    assert text.startswith("tabular learned by fisher: 12 outer steps")
    assert "best held-out NLL" in text and "kept in" in text


def test_a_rate_beyond_all_reason_is_warned_about(settings):
    wild = learn(**(settings | {"learning_rate": 1e6, "natural": False}))
    assert wild.warnings and wild.warnings[0] in repr(wild)


@pytest.mark.parametrize(
    "bad, words",
    [
        (dict(seed=2**63), "`seed` must be"),
        (dict(agent_episodes=10**12), "at most 100000"),
        (dict(task="cartpol"), "no task 'cartpol'"),
        (dict(damping=0.0), "`damping` must be positive"),
        (dict(agent_episodes=2), "at least 4"),
        (dict(optimizer="adamm"), "no optimizer"),
        (dict(reward="quadratic"), "vectors"),
    ],
)
def test_bad_settings_get_one_sentence(settings, bad, words):
    with pytest.raises(ValueError, match=words):
        learn(**(settings | bad))


def test_the_paper_preset_fills_only_what_was_not_said():
    """Also where what was said is our own default."""
    said = dict(method="sketch", sketch_size=64, cross="adjoint", adaptive=True)
    config = config_of("lqr", paper=True, **said)
    assert (config.sketch_size, config.cross, config.adaptive) == (64, "adjoint", True)
    assert (config.optimizer, config.inner) == ("sgd", "sac")
    assert (config.damping, config.damping_scale) == (1e-3, "absolute")
    assert config.agent_episodes == 1000


def test_the_paper_preset_is_the_papers_where_nothing_is_said():
    config = config_of("cartpole", paper=True, method="sketch")
    assert (config.cross, config.optimizer, config.inner) == ("raw", "sgd", "reinforce")
    assert config.sketch_size == 8 and config.expected_fisher is False


@pytest.mark.parametrize("env", tasks.names)
def test_a_complete_config_leaves_nothing_open(env):
    fields = dataclasses.asdict(config_of(env))
    assert not [name for name, value in fields.items() if value is None]


def test_configs_survive_json():
    config = config_of("lqr")
    again = from_json(json.loads(json.dumps(config.to_json(), allow_nan=False)))
    assert again == config


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(seed="x"), "`seed` in config.json is 'x', which is not a whole number"),
        (dict(seed=-1), "`seed` must be at least 0"),
        (dict(damping={}), "`damping` in config.json is {}, which is not a number"),
        (dict(env=1), "`env` in config.json is 1, which is not text"),
        (dict(policy_hidden=["a"]), "`policy_hidden` in config.json"),
        (dict(given=[]), "`given` in config.json"),
        (dict(method="magic"), "`method` must be fisher"),
        (dict(surprise=1), "unknown field 'surprise'"),
    ],
)
def test_a_config_with_wrong_types_gets_one_sentence(change, words):
    with pytest.raises(ValueError, match=words):
        from_json(config_of("lqr").to_json() | change)


def test_the_policy_may_be_the_mean_of_the_last_inner_solutions(tabular_demos):
    """Choices have it by default; the first one is of a single solution."""
    settings = dict(
        inner="ppo", steps=2, adaptive=False, progress=False, inner_updates=1
    )
    nll = lambda **more: [
        row["nll_valid"]
        for row in learn("tabular", tabular_demos, **settings, **more).metrics
    ]
    last, mean, usual = nll(average=1), nll(average=2), nll()
    assert last[0] == mean[0] and last[1] != mean[1] and usual == mean


def test_every_step_compares_its_hypergradient_with_the_soft_bellman_form(
    tabular_demos,
):
    """A table can do everything, so the two agree; other methods have no such row."""
    settings = dict(steps=2, progress=False, agent_episodes=256, damping=1e-3)
    rows = learn("tabular", tabular_demos, inner="exact", **settings).metrics
    assert min(row["soft_bellman_cosine"] for row in rows) > 0.95
    rows = learn("tabular", tabular_demos, "soft-bellman", steps=1, progress=False)
    assert "soft_bellman_cosine" not in rows.metrics[0]
