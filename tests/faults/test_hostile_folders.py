"""Run folders from somebody who means harm: one sentence and exit code 2."""

import dataclasses
import json
import re

import numpy as np
import pytest
from commands import COMMANDS
from fuzzing import damaged, damaged_json

from hyperirl.cli import main

HUGE = 10**400
DEEP = "[" * 100_000 + "]" * 100_000

OPENING = ("resume", "evaluate", "report", "compare")
READING = ("resume", "report", "compare")
SHOWING = ("report", "compare")


def refusal(capsys, *words) -> str:
    """What a command says when it refuses; nothing if it does what it should."""
    capsys.readouterr()
    try:
        main([str(word) for word in words])
    except SystemExit as error:
        assert error.code == 2
        said = capsys.readouterr().err
        assert said.startswith("hyperirl: ") and said.count("\n") == 1, said
        assert len(said) < 1000
        return said
    return ""


def changed(**fields):
    return lambda text: json.dumps(json.loads(text) | fields)


def line(added):
    return lambda text: f"{text}{added}\n"


def whole(text):
    return lambda _: text


BAD = {
    "config nested": ("config.json", whole(DEEP), OPENING, "nested too deep"),
    "config a list": ("config.json", whole("[]"), OPENING, "in place of named values"),
    "config null": ("config.json", whole("null"), OPENING, "in place of named values"),
    "config empty": ("config.json", whole(""), OPENING, "not JSON"),
    "config huge": ("config.json", changed(seed=HUGE), OPENING, "too large"),
    "config NaN": ("config.json", changed(damping=np.nan), OPENING, "NaN is not"),
    "config surrogate": ("config.json", changed(env="\ud800"), OPENING, "surrogates"),
    "command": ("provenance.json", changed(command=1.5), OPENING, "`command`.*a list"),
    "words": ("provenance.json", changed(command=[1]), OPENING, "`command`.*a list"),
    "versions": ("provenance.json", changed(versions={"a": 1}), OPENING, "`versions`"),
    "started": ("provenance.json", changed(started={}), OPENING, "`started`.*text"),
    "format": ("provenance.json", changed(format_version={}), OPENING, "version {}"),
    "row null": ("metrics.jsonl", line("null"), READING, "line 4 .* holds None"),
    "row list": ("metrics.jsonl", line("[1]"), READING, "line 4 .* in place of"),
    "row step": ("metrics.jsonl", line('{"step": "x"}'), READING, "`step` in line 4"),
    "row no step": ("metrics.jsonl", line("{}"), READING, "`step` in line 4"),
    "row minus": ("metrics.jsonl", line('{"step": -1}'), READING, "`step` in line 4"),
    "row true": ("metrics.jsonl", line('{"step": true}'), READING, "`step` in line 4"),
    "row words": (
        "metrics.jsonl",
        line('{"step": 4, "seconds": "x"}'),
        READING,
        "`seconds` in line 4",
    ),
    "row deep": ("metrics.jsonl", line(DEEP), READING, "Line 4.* nested too deep"),
    "row huge": (
        "metrics.jsonl",
        line(f'{{"step": 4, "snr": {HUGE}}}'),
        READING,
        "Line 4 .*too large",
    ),
    "evaluation huge": ("evaluation.json", changed(gap=HUGE), SHOWING, "too large"),
    "evaluation list": ("evaluation.json", whole("[1]"), SHOWING, "in place of named"),
    "evaluation deep": ("evaluation.json", whole(DEEP), SHOWING, "nested too deep"),
    "picture huge": ("picture.json", changed(x=HUGE), ("report",), "too large"),
    "picture text": ("picture.json", whole('"x"'), ("report",), "in place of named"),
    "config empty map": ("config.json", whole("{}"), OPENING[:2], "lacks the field"),
    "config type": ("config.json", changed(seed="x"), OPENING[:2], "a whole number"),
    "config seed": ("config.json", changed(seed=-1), OPENING[:2], "at least 0"),
    "config env": ("config.json", changed(env="a:b"), OPENING[:2], "no task that we"),
    "demos pin": ("config.json", changed(demos_hash="0"), OPENING[:2], "has changed"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_wrong_gets_a_sentence(run, capsys, case):
    name, change, commands, words = BAD[case]
    text = (run / name).read_text()
    (run / name).write_text(change(text), errors="surrogatepass")
    for command in commands:
        assert re.search(words, refusal(capsys, command, run)), command


@pytest.mark.parametrize("name", ["config", "provenance", "evaluation", "picture"])
def test_a_damaged_document_gets_a_sentence_or_does_no_harm(run, capsys, name):
    assert 6 < refusals(capsys, run, f"{name}.json", SHOWING, cases=60) < 60


def test_damaged_metrics_get_a_sentence_or_do_no_harm(run, capsys):
    assert 6 < refusals(capsys, run, "metrics.jsonl", SHOWING, cases=60) < 60


@pytest.mark.parametrize("name", ["demos.npz", "checkpoint.npz"])
def test_no_run_goes_on_from_what_is_damaged(run, capsys, name):
    """A few wounds are in places that say nothing."""
    assert 12 < refusals(capsys, run, name, ("resume",), cases=16) <= 16


# Those that the tests above do not call.
OTHERS = ("evaluate", "play", "watch", "export", "score", "demos")


@pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS if c.words.startswith(OTHERS)],
    ids=lambda command: command.name,
)
def test_other_commands_say_a_sentence_too(finished_run, tmp_path, command):
    command = dataclasses.replace(command, source=finished_run)
    path = command.write(tmp_path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    command.read(path)
    for _ in range(5):
        path.write_bytes(command.damaged(whole, random))
        try:
            command.read(path)
        except ValueError as error:
            words = str(error)
            assert words and "\n" not in words and len(words) < 1000, words
    path.write_bytes(b"null\n")
    with pytest.raises(ValueError, match=r"run|demos"):
        command.read(path)


def refusals(capsys, run, name, commands, *, cases) -> int:
    random, count = np.random.default_rng(0), 0
    whole = (run / name).read_bytes()
    for case in range(cases):
        content = _damaged(name, whole, random, bytewise=case % 3 == 0)
        (run / name).write_bytes(content)
        (run / "checkpoint.previous.npz").unlink(missing_ok=True)  # Nothing to fall to.
        count += bool(refusal(capsys, commands[case % len(commands)], run))
    return count


def _damaged(name, content, random, *, bytewise):
    if bytewise or name.endswith(".npz"):
        return damaged(content, random)
    if name.endswith(".json"):
        return damaged_json(json.loads(content), random).encode()
    lines = content.splitlines()
    place = random.integers(len(lines))
    lines[place] = damaged_json(json.loads(lines[place]), random).encode()
    return b"\n".join(lines) + b"\n"
