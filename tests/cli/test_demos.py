"""Commands in-process: what they print, where, and with which exit code."""

import json
import subprocess
import sys

import pytest

from hyperirl import demos
from hyperirl.cli import main

COLLECT = ["demos", "collect", "--env", "tabular", "--episodes", "3", "--out"]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setattr("hyperirl.cli.enable_compilation_cache", lambda: None)


def refused(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert caught.value.code == 2
    assert "Traceback" not in output.err + output.out
    return output.err


def test_collect_writes_and_says_what_to_type_next(tmp_path, capsys):
    path = tmp_path / "new" / "demos.npz"
    main([*COLLECT, str(path), "--seed=7", "--option=seed=2", "--discount=0.9"])
    printed = capsys.readouterr().out
    assert f"Wrote 3 episodes of tabular to {path}" in printed.replace("\n", " ")
    assert f"hyperirl demos inspect {path}" in printed
    made = demos.load(path)
    assert made.num_episodes == 3 and made.provenance.seed == 7
    assert made.provenance.options == {"seed": 2}
    assert made.provenance.discount == pytest.approx(0.9)


def test_inspect_shows_what_matters(capsys):
    main(["demos", "inspect", "lqr"])
    printed = capsys.readouterr().out
    for words in ("128", "12800", "soft Riccati", "expert NLL", "return", "action 1"):
        assert words in printed


def test_inspect_prints_json(capsys):
    main(["demos", "inspect", "lqr", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["environment"] == "lqr" and found["num_episodes"] == 128
    assert len(found["observations"]) == 4


def test_inspect_shows_how_often_actions_were_taken(tmp_path, capsys):
    main([*COLLECT, str(tmp_path / "a.npz")])
    main(["demos", "inspect", str(tmp_path / "a.npz")])
    printed = capsys.readouterr().out
    assert "0: " in printed and "uniform" in printed


def test_inspect_says_what_is_odd(tmp_path, capsys):
    main(["demos", "inspect", "lqr"])
    assert "Nothing about it is odd." in capsys.readouterr().out
    demos.save(demos.load("lqr")[:2], tmp_path / "few.npz")
    main(["demos", "inspect", str(tmp_path / "few.npz")])
    assert "- There are only 2 episodes, so" in capsys.readouterr().out
    main(["demos", "inspect", str(tmp_path / "few.npz"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [oddity["name"] for oddity in found["oddities"]] == ["too-few-episodes"]


@pytest.mark.parametrize("name", ["lqr", "cartpole"])
def test_inspect_draws_a_picture(name, tmp_path, capsys):
    path = tmp_path / "new" / "picture.png"
    main(["demos", "inspect", name, "--plot", str(path)])
    assert f"Drawn in {path}" in capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")


def test_convert_loses_nothing(tmp_path, capsys):
    """There and back through every format that is written."""
    given = demos.load("lqr")[:3]
    demos.save(given, tmp_path / "a.npz")
    chain = [tmp_path / name for name in ("a.npz", "b.csv", "c", "d.npz")]
    for source, out in zip(chain[:-1], chain[1:], strict=True):
        main(["demos", "convert", str(source), str(out)])
        assert f"Wrote 3 episodes to {out}." in capsys.readouterr().out
    again = demos.load(chain[-1])
    assert demos.content_hash(again) == demos.content_hash(given)
    assert "already exists" in refused(["demos", "convert", *chain[:2]], capsys)


def test_nothing_is_overwritten_unless_asked(tmp_path, capsys):
    path = tmp_path / "a.npz"
    path.write_text("precious")
    assert "already exists" in refused([*COLLECT, path], capsys)
    assert path.read_text() == "precious"
    main([*COLLECT, str(path), "--overwrite"])
    assert demos.load(path).num_episodes == 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["demos", "inspect", "nope"], "no demonstrations 'nope'"),
        (["demos", "inspect", "absent.npz"], "no such file"),
        (["demos", "inspect", "far/away-v0"], "or ask for its download"),
        (["demos", "inspect", "lqr", "--plot", "a.svg"], "does not end in .png"),
        (["demos", "convert", "lqr", "a.h5"], "does not end in .npz or .csv"),
        (["demos", "convert", "nope", "a.npz"], "no demonstrations 'nope'"),
        ([*COLLECT, "demos.h5"], "does not end in .npz"),
        ([*COLLECT, "a.npz", "--env", "cartpol"], "no task 'cartpol'"),
        ([*COLLECT, "a.npz", "--temperature", "0"], "must be positive"),
        ([*COLLECT, "a.npz", "--episodes", "0"], "at least 1"),
        ([*COLLECT, "a.npz", "--option", "horizon"], "NAME=VALUE"),
        ([*COLLECT, "a.npz", "--option", "wheels=4"], "does not take these options"),
        ([*COLLECT, "a.npz", "--updates", "0"], "at least one update"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "none"))
    error = refused(arguments, capsys)
    assert message in error and error.startswith("hyperirl: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_demos_gets_one_sentence(tmp_path, capsys):
    (tmp_path / "bad.npz").write_bytes(b"PK not really")
    error = refused(["demos", "inspect", tmp_path / "bad.npz"], capsys)
    assert "damaged" in error and error.count("\n") == 1


def test_a_folder_that_may_not_be_written_gets_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    error = refused([*COLLECT, tmp_path / "file" / "a.npz"], capsys)
    assert error.startswith("hyperirl: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["demos"], ["demos", "colect"], ["demos", "inspect"], ["fly"]]
)
def test_unknown_or_missing_words_exit_with_2(arguments, capsys):
    assert "hyperirl" in refused(arguments, capsys)


@pytest.mark.parametrize("command", ["collect", "inspect", "convert"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["demos", command, "--help"])
    assert caught.value.code == 0
    assert f"    hyperirl demos {command} " in capsys.readouterr().out


def test_versions(capsys):
    main(["--version"])
    assert capsys.readouterr().out.startswith("hyperirl 0.")
    main(["version"])
    assert "jaxlib 0." in capsys.readouterr().out


def test_the_traceback_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("HYPERIRL_TRACEBACK", "1")
    with pytest.raises(demos.DemosError):
        main(["demos", "inspect", "nope"])


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(demos, "load", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["demos", "inspect", "lqr"])
    assert caught.value.code == 130 and "interrupted" in capsys.readouterr().err


def test_the_package_can_be_run():
    result = subprocess.run(
        [sys.executable, "-m", "hyperirl", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("hyperirl 0.")
