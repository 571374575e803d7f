"""What is told of a run while it runs, outside a terminal."""

import itertools
import types

import pytest
from rich.console import Console

from hyperirl import progress
from hyperirl.progress import StepProgress


@pytest.mark.parametrize("total, of_total", [(8, "/8"), (None, "")])
def test_a_line_a_step_says_how_long_it_will_take(total, of_total, monkeypatch, capsys):
    """Ten seconds a step; a quarter of the run each, after one that compiles."""
    ticks = itertools.count(step=10)
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(progress, "time", clock)
    with StepProgress(total, Console(force_terminal=False)) as shown:
        for step, done in ((1, 0.0), (2, 0.25), (3, 0.5)):
            shown.show({"step": step, "done": done, "nll_valid": 2.5})
    assert capsys.readouterr().out.splitlines() == [
        f"step 1{of_total}: Held-out NLL 2.50; time left unknown",
        f"step 2{of_total}: Held-out NLL 2.50; 30 s left",
        f"step 3{of_total}: Held-out NLL 2.50; 20 s left",
    ]
