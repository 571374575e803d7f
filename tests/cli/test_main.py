"""The command itself, whatever it is told to do."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hyperirl.cli import Command, main
from hyperirl.cli.arguments import run_path
from hyperirl.cli.demos import Kind
from hyperirl.cli.helping import names


def test_it_ends_without_a_word_when_nobody_reads_on():
    """As in `hyperirl --help | head -1`."""
    command = [sys.executable, "-m", "hyperirl", "--help"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


def test_without_arguments_it_shows_what_most_people_want(capsys):
    main([])
    words = capsys.readouterr().out
    for command in ("learn\n", "report latest\n", "learn --env MODULE:NAME --demos"):
        assert f"  hyperirl {command}" in words
    assert max(map(len, words.splitlines())) <= 60


@pytest.mark.parametrize("command", ["", "demos"])
def test_help_has_a_line_for_each_command(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    main([*command.split(), "--help"])
    words = capsys.readouterr().out
    assert max(map(len, words.splitlines())) <= 60
    for name in names(Kind if command else Command):
        assert len(re.findall(rf"^  {name} +[A-Z]", words, re.MULTILINE)) == 1


@pytest.mark.parametrize("command", ["learn", "evaluate", "demos inspect", "sweep"])
def test_help_fits_into_a_narrow_terminal(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    words = capsys.readouterr().out
    assert "╭" in words and max(map(len, words.splitlines())) <= 60
    assert "None" not in words


def test_basic_options_come_before_advanced_ones(capsys):
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    words = capsys.readouterr().out
    titles = (" --paper ", " basic options ", " --steps ", " curvature options ")
    places = [words.rindex(title) for title in titles]
    assert places == sorted(places)


def test_quiet_prints_nothing_unless_it_fails(capsys):
    main(["demos", "inspect", "lqr", "--quiet"])
    assert capsys.readouterr() == ("", "")
    with pytest.raises(SystemExit) as caught:
        main(["--quiet", "demos", "inspect", "nothing"])
    said = capsys.readouterr()
    assert caught.value.code == 2 and said.out == ""
    assert said.err.startswith("hyperirl: There are no demonstrations 'nothing'")


def test_a_script_reads_the_summary_of_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main("learn --env lqr --method bc --steps 1 --json".split())
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["folder"] == "runs/lqr-bc-0" == str(run_path(Path("latest")))
    assert (found["steps"], found["reward"]) == (1, False)
    assert found["best_nll_valid"] == pytest.approx(found["nll_valid"])


def test_lines_of_steps_must_be_asked_for_by_a_positive_number(capsys):
    with pytest.raises(SystemExit):
        main("learn --log-every 0".split())
    assert "`--log-every` must be at least 1, got 0" in capsys.readouterr().err
