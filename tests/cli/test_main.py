"""The command itself, whatever it is told to do."""

import subprocess
import sys


def test_it_ends_without_a_word_when_nobody_reads_on():
    """As in `hyperirl --help | head -1`."""
    command = [sys.executable, "-m", "hyperirl", "--help"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")
