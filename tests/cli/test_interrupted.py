"""Ctrl-C outside of learning: a sentence, whatever the command was doing."""

import pytest

from hyperirl import cli


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", ["parse", "enable_compilation_cache"])
def test_an_interrupted_command_says_so_in_a_sentence(monkeypatch, capsys, place):
    monkeypatch.setattr(cli, place, interrupt)
    with pytest.raises(SystemExit) as caught:
        cli.main(["version"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == "hyperirl: interrupted.\n"
