"""Numbers about a run as a whole."""

from pathlib import Path

import pytest

from hyperirl.report.reading import Run, estimate


def test_a_gap_is_relative_to_the_size_of_the_floor():
    """The NLL of densities may be negative; a run above its floor is still above it."""
    rows = [{"step": 1, "best_nll_valid": -8.0, "floor_valid": -10.0}]
    run = Run("a", Path(), {}, {}, rows, {}, {})
    assert estimate(run, "valid_gap_percent").mean == pytest.approx(20.0)
    run = Run(
        "a", Path(), {}, {}, [], {"policy_nll": -8.0, "floor": {"mean": -10.0}}, {}
    )
    assert estimate(run, "gap_percent").mean == pytest.approx(20.0)
