"""The one schema of the numbers that a run writes down."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl.metrics import (
    METRICS,
    CloneMetrics,
    LoopMetrics,
    StepMetrics,
    as_row,
)

LOOP = LoopMetrics(step_seconds=0.5, seconds=2.0, learned_seconds=1.5, done=0.25)
REQUIRED = [
    field.name
    for field in dataclasses.fields(StepMetrics)
    if field.default is dataclasses.MISSING
]
WHOLE = {"step", "inner_updates", "agent_episodes", "skipped"}


def step_metrics(**values) -> StepMetrics:
    """Every number that must be there is 3, or as given."""
    whole = lambda name: jnp.int32 if name in WHOLE else jnp.float32
    threes = {name: jnp.asarray(3, whole(name)) for name in REQUIRED}
    return StepMetrics(**threes | values)


def test_a_row_is_plain_numbers_without_what_does_not_exist():
    step = step_metrics(damping=jnp.float32(0.5))
    row = as_row(step, LOOP)
    assert set(row) == {*REQUIRED, "damping", *dataclasses.asdict(LOOP)} - {
        "floor_valid"
    }
    assert (row["damping"], row["seconds"]) == (0.5, 2.0)
    assert {name for name, value in row.items() if type(value) is int} == WHOLE
    assert {type(value) for value in row.values()} == {int, float}


def test_a_clone_has_a_row_of_its_own():
    clone = CloneMetrics(
        jnp.int32(1), jnp.float32(2.5), jnp.float32(2.5), jnp.float32(2.25)
    )
    row = as_row(clone, dataclasses.replace(LOOP, floor_valid=2.0))
    assert row == {
        "step": 1,
        "nll_valid": 2.5,
        "best_nll_valid": 2.5,
        "nll_train": 2.25,
        "step_seconds": 0.5,
        "seconds": 2.0,
        "learned_seconds": 1.5,
        "done": 0.25,
        "floor_valid": 2.0,
    }


def test_a_compiled_step_returns_metrics():
    compiled = jax.jit(lambda x: step_metrics(snr=x, radius=None))
    row = as_row(compiled(jnp.float32(7.0)), LOOP)
    assert row["snr"] == 7.0 and "radius" not in row


def test_a_metric_must_be_a_scalar():
    with pytest.raises(Exception, match="snr"):
        step_metrics(snr=jnp.zeros(2, jnp.float32))


def test_every_number_of_a_row_has_words():
    for kind in (StepMetrics, LoopMetrics, CloneMetrics):
        assert {field.name for field in dataclasses.fields(kind)} <= set(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title[0].isupper() and metric.unit and metric.meaning
    titles = [metric.title for metric in METRICS.values()]
    assert len(set(titles)) == len(titles)


def test_columns_are_nan_where_nothing_was_recorded():
    rows = [{"snr": 1}, {"snr": None}, {}, {"snr": "high"}, {"snr": 2.5}]
    found = METRICS["snr"].column(rows)
    np.testing.assert_array_equal(found, [1, np.nan, np.nan, np.nan, 2.5])


def test_what_follows_from_rows_is_computed():
    rows = [
        {"nll_valid": 5.0, "floor_valid": 3.0, "skipped": 0},
        {"nll_valid": 4.0, "floor_valid": 3.0, "skipped": 1},
        {"nll_valid": 3.5, "skipped": 1},
    ]
    np.testing.assert_array_equal(METRICS["gap"].column(rows), [2, 1, np.nan])
    np.testing.assert_array_equal(METRICS["skipped_total"].column(rows), [0, 1, 2])
