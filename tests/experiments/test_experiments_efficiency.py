"""How much faster, and how much smaller."""

import pytest

from hyperirl.experiments import efficiency


def test_a_method_that_takes_half_as_long_is_twice_as_fast():
    cells = efficiency.cells("quick", 1, {})
    seconds = {"explicit": 4.0, "sketch": 2.0, "fisher": 1.0, "ml-irl": 8.0}
    memory = {"explicit": 900.0, "sketch": 300.0, "fisher": 450.0, "ml-irl": 1800.0}
    result = lambda cell: {
        "config": cell.settings["config"],
        "warm_step_seconds": seconds[cell.settings["config"]["method"]],
        "peak_mb": memory[cell.settings["config"]["method"]],
        "compile_seconds": 1.0,
    }
    done = {cell.id: result(cell) for cell in cells}
    cells = efficiency.cells("quick", 1, done)
    done = {cell.id: result(cell) for cell in cells}
    outcome = efficiency.summarize(cells, done)
    for table in outcome.tables:
        found = {row["method"]: row for row in table.rows}
        assert found["explicit"]["speedup"] == 1
        assert found["ours"]["speedup"] == pytest.approx(4)
        assert found["ours"]["memory_gain"] == pytest.approx(2)
        assert found["ML-IRL"]["speedup"] == pytest.approx(0.5)
