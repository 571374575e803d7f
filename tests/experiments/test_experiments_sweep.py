"""Sweeps and comparisons: on real run folders, without learning in most of them."""

import dataclasses
import json

import pytest

from hyperirl import cli, demos
from hyperirl.experiments import learn
from hyperirl.experiments.compare import compare
from hyperirl.experiments.learn import learning
from hyperirl.experiments.sweep import parse_choice, sweep_cells
from hyperirl.learning import LearnConfig, complete
from hyperirl.runs import RunFolder


@pytest.mark.parametrize(
    "text, expected",
    [
        ("learning_rate=1e-2,3", ("learning_rate", [0.01, 3.0])),
        ("learning-rate=none", ("learning_rate", [None])),
        ("steps=5", ("steps", [5])),
        ("method=fisher,ml-irl", ("method", ["fisher", "ml-irl"])),
        ("policy_hidden=32x32,64", ("policy_hidden", [[32, 32], [64]])),
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
        (["steps=1.5"], "`steps` must be a whole number or none, got '1.5'"),
        (["damping=nan"], "`damping` must be a number"),
        (["damping=-1"], "`damping` must be positive"),
        (["method=fish"], "must be fisher, explicit"),
        (["damping"], "FIELD=VALUE"),
        (["damping=1", "damping=2"], "set twice"),
        (["seed=1,2"], "--seeds"),
    ],
)
def test_bad_choices_get_one_sentence(choices, words):
    with pytest.raises(ValueError, match=words):
        sweep_cells(LearnConfig(), choices, 1)


def test_a_sweep_is_all_combinations_with_all_seeds():
    cells = sweep_cells(
        LearnConfig(env="lqr", seed=7), ["damping=0.1,1", "steps=2,3,4"], 2
    )
    assert len({cell.id for cell in cells}) == 12
    configs = [cell.settings["config"] for cell in cells]
    assert {config["seed"] for config in configs} == {7, 8}
    assert all(config["env"] == "lqr" for config in configs)


@pytest.fixture
def runs(tmp_path):
    """Two settings with three seeds each; the second one is better."""
    for rate, level in ((0.1, 200.0), (0.3, 190.0)):
        for seed in range(3):
            config = complete(LearnConfig(env="lqr", learning_rate=rate, seed=seed))
            path = tmp_path / f"sweep/runs/{rate}-{seed}"
            folder = RunFolder.create(path, dataclasses.asdict(config), ["test"])
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
    assert "best held-out NLL" in capsys.readouterr().out
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


@pytest.mark.slow
def test_a_sweep_whose_runs_failed_says_so_by_its_code(tmp_path, capsys):
    args = ["sweep", "--env", "tabular", "--demos", str(tmp_path / "absent.npz")]
    args += ["--set", "steps=1", "--seeds", "1", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "1 of 1 runs failed" in printed and "hyperirl compare" not in printed


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_one_in_time_stops(tmp_path):
    """A real run on a finite MDP; the clock is looked at after every step."""
    source = tmp_path / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), source)
    config = dict(env="tabular", demos=str(source), method="ml-irl", steps=8)
    config["agent_episodes"] = 16  # As in other tests: it is compiled once.
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "provenance.json").write_text("{}")  # What an early kill leaves.
    timed = learning("trial", config | {"time": 1e-9})
    first = learn.run(timed.settings, folder)
    assert first["rows"]["step"] == [1, 2]  # The first step compiles: it is free.
    again = learn.run(timed.settings, folder)
    assert again["rows"]["step"] == [1, 2], "its time was up already"
    whole = learn.run(learning("trial", config).settings, folder)
    assert whole["rows"]["step"] == list(range(1, 9))
    assert whole["rows"]["nll_valid"][:2] == first["rows"]["nll_valid"]
    assert whole["config"]["steps"] == 8 and whole["warm_step_seconds"] > 0
