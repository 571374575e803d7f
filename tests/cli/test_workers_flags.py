"""`--workers` and `--ray`: what is refused in one sentence, and what a run keeps."""

import contextlib

import pytest

from hyperirl import demos
from hyperirl.cli import main
from hyperirl.cli.workers import Workers
from hyperirl.experiments import cluster
from hyperirl.learning import create_folder, from_json, reopen, set_up
from hyperirl.options import Options
from hyperirl.worlds.engine import Engine
from hyperirl.worlds.workers import ShardedEngine

GYM = ["--env", "gym:CartPole-v1"]


@pytest.mark.parametrize(
    "command",
    [["learn", "--demos", "cartpole"], ["train"], ["demos", "collect"]],
    ids=lambda command: command[-1],
)
@pytest.mark.parametrize(
    "said, sentence",
    [
        ([*GYM, "--ray"], "`--ray` needs `--workers N`"),
        ([*GYM, "--workers", "-1"], "must not be negative, got -1"),
        ([*GYM, "--workers", "5000"], "1024 workers at most"),
        ([*GYM, "--workers", "1", "--ray", "192.0.2.7:1"], "add `--trust-cluster`"),
        (["--workers", "2"], "cartpole cannot be dealt out to workers"),
    ],
    ids=["uncounted", "negative", "thousands", "stranger", "compiled"],
)
def test_what_makes_no_sense_is_refused(command, said, sentence, tmp_path, capsys):
    """Before anything is written or opened."""
    out = ["--out", str(tmp_path / "out.npz")]
    with pytest.raises(SystemExit) as ended:
        main([*command, *said, *out])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_cluster_is_not_even_asked_unless_it_is_trusted(monkeypatch):
    monkeypatch.setattr(cluster, "running", lambda *_: pytest.fail("It was asked."))
    with pytest.raises(ValueError, match="add `--trust-cluster`"):
        with Workers(ray=("192.0.2.7:1",)).ready():
            pass


def test_ray_gets_the_address_and_says_what_it_opened(monkeypatch, capsys):
    @contextlib.contextmanager
    def running(address, say):
        say(f"Joined {address}.")
        yield

    monkeypatch.setattr(cluster, "running", running)
    with Workers(ray=("192.0.2.7:1",), trust_cluster=True).ready():
        assert capsys.readouterr().err == "Joined 192.0.2.7:1.\n"


def test_a_run_keeps_its_number_of_workers(tmp_path):
    """It is resumed and evaluated with as many, unless the user says another."""
    said = Options(steps=1, policy_hidden=(4,), reward_hidden=(4,))
    setup = set_up("gym:CartPole-v1", "cartpole", said, workers=1)
    folder = create_folder(setup, tmp_path / "run", ["hyperirl"])
    again = reopen(folder)
    for each in (setup, again):
        engine = each.environment.engine
        assert isinstance(engine, ShardedEngine) and len(engine.workers) == 1
        assert each.config.workers == 1
        engine.workers[0].close()
    assert isinstance(reopen(folder, workers=0).environment.engine, Engine)


def test_runs_of_earlier_versions_have_no_workers():
    setup = set_up("cartpole", demos.load("cartpole"), Options(steps=1))
    fields = setup.config.to_json()
    del fields["workers"]
    assert from_json(fields).workers == 0
