"""Sweeps and comparisons: on real run folders, without learning in most of them."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from hyperirl import cli, demos
from hyperirl.experiments import learn
from hyperirl.experiments.compare import compare
from hyperirl.experiments.learn import learning
from hyperirl.experiments.pool import run_in_processes
from hyperirl.experiments.sweep import parse_choice, sweep_cells
from hyperirl.learning import complete
from hyperirl.options import Options
from hyperirl.runs import RunError, RunFolder
from hyperirl.tasks import make


@pytest.mark.parametrize(
    "text, expected",
    [
        ("learning_rate=1e-2,3", ("learning_rate", [0.01, 3.0])),
        ("learning-rate=0.1", ("learning_rate", [0.1])),
        ("clip=1,inf", ("clip", [1.0, math.inf])),
        ("env=lqr,cartpole", ("env", ["lqr", "cartpole"])),
        ("steps=5", ("steps", [5])),
        ("method=fisher,ml-irl", ("method", ["fisher", "ml-irl"])),
        ("policy_hidden=32x32,64", ("policy_hidden", [(32, 32), (64,)])),
        ("adaptive=true,false", ("adaptive", [True, False])),
        ("optimizer=sgd", ("optimizer", ["sgd"])),
    ],
)
def test_values_have_the_type_of_their_field(text, expected):
    assert parse_choice(text) == expected


@pytest.mark.parametrize(
    "choices, words",
    [
        (["learning_rat=1"], "no setting `learning_rat`"),
        (["steps=1.5"], "`steps` must be a whole number, got '1.5'"),
        (["damping=nan"], "`damping` must be a number"),
        (["damping=-1"], "`damping` must be positive"),
        (["method=fish"], "must be fisher, explicit"),
        (["adaptive=yes"], "`adaptive` must be true or false, got 'yes'"),
        (["damping=inf"], "`damping` must be positive"),
        (["env=mars"], "no task 'mars'"),
        (["env=lqr", "demos=nowhere.npz"], "nowhere.npz"),
        (["env=tabular"], "no bundled demonstrations of tabular"),
        (["damping"], "FIELD=VALUE"),
        (["damping=1", "damping=2"], "set twice"),
        (["seed=1,2"], "--seeds"),
    ],
)
def test_bad_choices_get_one_sentence(choices, words):
    with pytest.raises(ValueError, match=words):
        sweep_cells({"env": "cartpole"}, Options(), choices, 1)


def test_a_sweep_is_all_combinations_with_all_seeds():
    choices = ["damping=0.1,1", "steps=2,3,4"]
    cells = sweep_cells({"env": "lqr"}, Options(seed=7), choices, 2)
    assert len({cell.id for cell in cells}) == 12
    configs = [cell.settings["config"] for cell in cells]
    assert {config["seed"] for config in configs} == {7, 8}
    assert all(config["env"] == "lqr" for config in configs)


def test_a_sweep_says_only_what_was_said():
    """An absent limit survives JSON, which has no word for it."""
    said = Options(clip=math.inf, policy_hidden=(8,))
    (cell,) = sweep_cells({"env": "lqr"}, said, (), 1)
    assert set(cell.settings["config"]) == {"env", "clip", "policy_hidden", "seed"}
    again = type(cell).from_json(cell.to_json())
    assert learn.said_in(again.settings) == Options(
        clip=math.inf, policy_hidden=(8,), seed=0
    )


@pytest.fixture
def runs(tmp_path):
    """Two settings with three seeds each; the second one is better."""
    for rate, level in ((0.1, 200.0), (0.3, 190.0)):
        for seed in range(3):
            said = Options(learning_rate=rate, seed=seed)
            config = complete(said, make("lqr")).to_json()
            path = tmp_path / f"sweep/runs/{rate}-{seed}"
            folder = RunFolder.create(path, config, ["test"])
            nll = level + seed
            folder.append_metrics({"step": 1, "seconds": 2.0, "best_nll_valid": nll})
    return tmp_path / "sweep"


def test_the_best_held_out_likelihood_comes_first(runs):
    table = compare([runs])
    assert list(table.headings)[0] == "learning_rate"
    assert [row["learning_rate"] for row in table.rows] == [0.3, 0.1]
    found = table.rows[0]["best_nll_valid"]
    assert (found["mean"], found["n"]) == (191.0, 3)
    assert found["low"] == pytest.approx(191 - 4.303 / 3**0.5, abs=1e-3)


def test_the_command_prints_and_writes(runs, capsys, tmp_path):
    for suffix in ("md", "json"):
        cli.main(["compare", str(runs), "--out", str(tmp_path / f"table.{suffix}")])
    assert "Best held-out NLL" in capsys.readouterr().out
    assert json.loads((tmp_path / "table.json").read_text())["rows"][0]["runs"] == 3
    assert "| 0.3 |" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    "args, words",
    [
        (["compare", "nowhere"], "is not a folder"),
        (["compare", ".", "--out", "table.txt"], "must end in .md or .json"),
        (["sweep", "--set", "damping=x"], "must be a number"),
        (["sweep", "--set", "damping=1", "--workers", "0"], "--workers"),
        (["sweep", "--set", "damping=1", "--out", "/dev/null/x"], "Cannot write"),
        (["reproduce", "damping", "--seeds", "0"], "--seeds"),
        (["reproduce", "damping", "--out", "/dev/null/x"], "Cannot write"),
        (["reproduce", "damping", "--ray", "a", "b"], "one address"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(
    args, words, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.main(args)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.fixture
def tabular(tmp_path):
    """Demonstrations in a small finite MDP, which take no time."""
    source = tmp_path / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), source)
    return source


@pytest.mark.slow
def test_a_sweep_one_of_whose_runs_failed_says_so_by_its_code(
    tabular, tmp_path, capsys
):
    choice = f"demos={tabular},{tmp_path / 'absent.npz'}"
    args = ["sweep", "--env", "tabular", "--method", "bc", "--set", choice]
    args += ["--seeds", "1", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "1 of 2 runs failed" in printed and "hyperirl compare" in printed


def test_a_sweep_without_its_demonstrations_begins_nothing(tmp_path, capsys):
    args = ["sweep", "--env", "tabular", "--demos", str(tmp_path / "absent.npz")]
    with pytest.raises(SystemExit) as ended:
        cli.main([*args, "--out", str(tmp_path / "out")])
    assert ended.value.code == 2 and not (tmp_path / "out").exists()
    assert "absent.npz" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_one_in_time_stops(
    tabular, tmp_path, monkeypatch
):
    """A real run on a finite MDP; the clock is looked at after every step."""
    config = dict(env="tabular", demos=str(tabular), method="ml-irl")
    config["agent_episodes"] = 16  # As in other tests: it is compiled once.
    timed = learning("trial", config | {"time": 1e-9})
    first = learn.run(timed.settings, tmp_path / "timed")
    assert first["rows"]["step"] == [1, 2]  # The first step compiles: it is free.
    again = learn.run(timed.settings, tmp_path / "timed")
    assert again["rows"]["step"] == [1, 2], "its time was up already"

    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "provenance.json").write_text("{}")  # What an early kill leaves.
    cell = learning("trial", config | {"steps": 8})

    def stop(row):
        if row["step"] == 3:
            raise KeyboardInterrupt

    real = learn.run_learning
    monkeypatch.setattr(
        learn, "run_learning", lambda *parts: real(*parts, on_step=stop)
    )
    with pytest.raises(KeyboardInterrupt):
        learn.run(cell.settings, folder)
    kept = RunFolder.open(folder).metrics()
    assert [row["step"] for row in kept] == [1, 2, 3]
    monkeypatch.setattr(learn, "run_learning", real)
    whole = learn.run(cell.settings, folder)
    assert whole["rows"]["step"] == list(range(1, 9))
    assert whole["rows"]["nll_valid"][:3] == [row["nll_valid"] for row in kept]
    assert whole["config"]["steps"] == 8 and whole["warm_step_seconds"] > 0


def test_a_cell_does_not_go_on_with_other_demonstrations(tabular, tmp_path):
    config = dict(env="tabular", demos=str(tabular), method="bc")
    cell = learning("trial", config)
    learn.run(cell.settings, tmp_path / "run")
    demos.save(demos.collect("tabular", 30, seed=1), tabular, overwrite=True)
    with pytest.raises(RunError, match="begun with other demonstrations"):
        learn.run(cell.settings, tmp_path / "run")


OWN = """
from hyperirl.tasks import make

def make_env():
    return make("tabular", seed=1).environment
"""


@pytest.mark.slow
def test_a_sweep_in_an_environment_of_ones_own(tmp_path, monkeypatch):
    """The module is in the folder where the command was started, as its demos are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("my_sweep_module.py").write_text(OWN)
    env = "my_sweep_module:make_env"
    demos.save(demos.collect(env, 20), "mine.npz")
    shared = {"env": env, "demos": "mine.npz"}
    (cell,) = sweep_cells(shared, Options(method="bc"), (), 1)
    ended = []
    run_in_processes(
        [cell],
        tmp_path / "out",
        workers=1,
        on_done=lambda cell, reason: ended.append(reason),
    )
    assert ended == [None]
    assert cell.load(tmp_path / "out")["config"]["env"] == env


REGISTERING = """
import gymnasium
gymnasium.register(
    "Mine-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=500
)
"""


@pytest.mark.slow
def test_a_sweep_imports_what_the_user_names_where_it_learns(tmp_path):
    """In processes of its own, as a user would: nothing is registered here."""
    (tmp_path / "my_envs.py").write_text(REGISTERING)
    said = "sweep --import my_envs --env gym:Mine-v0 --demos cartpole --method bc"
    said += " --steps 1 --seeds 1 --agent-episodes 4 --policy-hidden 4 --out mine"
    ended = subprocess.run(
        [sys.executable, "-m", "hyperirl", *said.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(list((tmp_path / "mine/cells").iterdir())) == 1
