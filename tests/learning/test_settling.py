"""A run ends when the held-out likelihood has stopped moving beyond its noise."""

import numpy as np
import pytest

import hyperirl as hi
from hyperirl.learning.settling import has_settled

NOISE = np.random.default_rng(0).normal(size=40).tolist()


def test_noise_around_a_level_has_settled():
    assert has_settled(NOISE)


@pytest.mark.parametrize("slope", [1e-6, 1e-2, 10.0])
def test_a_steady_fall_has_not(slope):
    assert not has_settled([100 - slope * step for step in range(40)])


def test_a_fall_below_the_noise_has_and_one_above_it_has_not():
    falling = lambda slope: [x - slope * i for i, x in enumerate(NOISE)]
    assert has_settled(falling(0.001)) and not has_settled(falling(0.2))


def test_a_rise_has_settled():
    assert has_settled([float(step) for step in range(40)])


def test_what_is_short_or_not_known_has_not():
    assert not has_settled(NOISE[:19])
    assert not has_settled([*NOISE[:-1], None]) and not has_settled([*NOISE, np.nan])


def test_only_the_last_steps_count():
    assert has_settled([1000.0 - step for step in range(100)] + NOISE[20:])


def test_a_run_ends_when_it_has_settled_and_not_before():
    made = hi.demos.collect("tabular", 20, seed=0)
    settings = dict(inner="exact", steps=300, progress=False)
    result = hi.learn("tabular", made, until_settled=True, **settings)
    nll = [row["nll_valid"] for row in result.metrics]
    assert has_settled(nll) and not has_settled(nll[:-1])
    assert len(nll) < 300 and "settled before" in repr(result)
