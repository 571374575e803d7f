"""Stopping a command: at once where nothing is lost, else after saving.

The program loads the module alone, without JAX, so that it starts in no time. It works
in C, where Python does not look at signals: as while a program is compiled. Saving
takes as long, so it does not matter whether the signal comes before the work begins.
"""

import signal
import subprocess
import sys
import time
from importlib import util

import pytest

PROGRAM = """
import hashlib, importlib.util, signal, sys, time
signal.signal(
    signal.SIGHUP, signal.SIG_IGN if sys.argv[2] == "nohup" else signal.SIG_DFL
)
spec = importlib.util.spec_from_file_location("stopping", sys.argv[1])
stopping = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stopping)
class Slow:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(20)
work = lambda rounds: hashlib.pbkdf2_hmac("sha256", b"", b"", rounds)
began = time.monotonic()
work(50_000)
second = int(50_000 / (time.monotonic() - began))
with stopping.Stopping("Go on: resume") as stop:
    stop.unsaved = sys.argv[2] != "nothing"
    try:
        if sys.argv[2] == "finalizer":
            Slow()  # Python forgets what is raised in its finalizer.
        print("ready", flush=True)
        work(int(float(sys.argv[3]) * second))
        time.sleep(60)
    except KeyboardInterrupt:
        work(int(float(sys.argv[3]) * second))
        print("saved", flush=True)
        sys.exit(130)
"""


def stopped(state, seconds, *signals):
    """The exit code, the words, and the time from the first signal to the end."""
    place = util.find_spec("hyperirl.cli.stopping").origin
    command = [sys.executable, "-c", PROGRAM, place, state, str(seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.1)
        said, told = process.communicate(timeout=30)
    return process.returncode, said, told, time.monotonic() - began


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_with_nothing_to_save_it_ends_at_once_whatever_runs(name):
    code, said, told, took = stopped("nothing", 20, getattr(signal, name))
    assert (code, said, told.strip()) == (130, "", "Go on: resume")
    assert took < 15  # The work takes 20 s, and more on a busy machine.


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_is_unsaved_is_saved_first_and_the_user_told_so_meanwhile(name):
    code, said, told, _ = stopped("unsaved", 0.5, getattr(signal, name))
    assert (code, said) == (130, "saved\n")
    assert told.strip().startswith("Stopping: finishing what runs, then saving.")


def test_a_terminal_that_closes_does_not_stop_what_nohup_started():
    code, said, told, _ = stopped("nohup", 0.5, signal.SIGHUP, signal.SIGTERM)
    assert (code, said) == (130, "saved\n")  # The second of the signals is the first.
    assert told.strip().startswith("Stopping: finishing what runs, then saving.")


def test_a_second_signal_ends_it_and_claims_nothing():
    both = signal.SIGINT, signal.SIGTERM
    code, said, told, took = stopped("unsaved", 20, *both)
    assert (code, said) == (130, "")
    assert told.strip().endswith("Stopped at once. Go on: resume")
    assert took < 15  # The work takes 20 s, and more on a busy machine.


def test_a_signal_in_a_finalizer_is_not_forgotten():
    code, said, told, took = stopped("finalizer", 0.1, signal.SIGINT)
    assert (code, said.splitlines()[-1]) == (130, "saved")
    assert "Traceback" not in told and "Stopped at once" not in told
    assert took < 15  # The finalizer takes 20 s.
