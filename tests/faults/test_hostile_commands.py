"""Each command on a run of somebody who means harm: a sentence and exit code 2."""

import dataclasses

import numpy as np
import pytest
from commands import COMMANDS

CASES = 5
# Others are in `test_hostile_folders`.
LESS = ("evaluate", "play", "watch", "export", "score", "demos")


@pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS if c.words.startswith(LESS)],
    ids=lambda command: command.name,
)
def test_a_damaged_file_gets_a_sentence_or_does_no_harm(
    finished_run, tmp_path, command
):
    command = dataclasses.replace(command, source=finished_run)
    path = command.write(tmp_path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    command.read(path)
    for _ in range(CASES):
        path.write_bytes(command.damaged(whole, random))
        try:
            command.read(path)
        except ValueError as error:
            words = str(error)
            assert words and "\n" not in words and len(words) < 1000, words
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"run|demos"):
        command.read(path)
