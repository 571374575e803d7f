"""What is told of a run while it runs, outside a terminal."""

import io
import itertools
import types

import pytest
from rich.console import Console

from hyperirl import progress
from hyperirl.progress import StepProgress

PIPE = Console(force_terminal=False)


@pytest.fixture(autouse=True)
def ten_seconds_a_look(monkeypatch):
    ticks = itertools.count(step=10)
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(progress, "time", clock)


def steps(shown):
    with shown:
        for step, done in ((1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75)):
            shown.show({"step": step, "done": done, "nll_valid": 2.5})


@pytest.mark.parametrize("total, of_total", [(8, "/8"), (None, "")])
def test_a_line_says_how_long_it_will_take(total, of_total, capsys):
    steps(StepProgress(total, PIPE, log_every=2))
    assert capsys.readouterr().out.splitlines() == [
        "Compiling ...",
        "First step done after 10 s.",
        f"step 2{of_total}: Held-out NLL 2.50; 30 s left",
        f"step 4{of_total}: Held-out NLL 2.50; 10 s left",
    ]


def test_steps_are_silent_unless_they_are_asked_for(capsys):
    steps(StepProgress(8, PIPE))
    said = capsys.readouterr().out
    assert said == "Compiling ...\nFirst step done after 10 s.\n"


def test_silence_is_silence(capsys):
    steps(StepProgress(8, PIPE, log_every=1, silent=True))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("width", [40, 60])
def test_the_numbers_in_place_fit_into_a_narrow_terminal(width):
    narrow = Console(force_terminal=True, width=width, file=io.StringIO())
    shown = StepProgress(8000, narrow)
    row = {"step": 7999, "done": 0.5, "nll_valid": 2.5}
    lines = narrow.render_lines(shown._table(row, "step 7999/8000", "12345 s left"))
    assert len(lines) == 2  # The bar, and one number.
