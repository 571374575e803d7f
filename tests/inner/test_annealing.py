"""Rates fall within a solve; budgets end it; chunks make up a whole training."""

import dataclasses
import itertools

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.inner import PPO, SolveBudget, SolveReport, chunks


def test_the_rates_of_ppo_fall_linearly_to_their_last_share():
    solver, turns, key = PPO(final_rate=0.2), jnp.arange(4, dtype=jnp.int32), jr.key(0)
    shares = [solver._turn(turn, jnp.int32(4), key=key)[0] for turn in turns]
    np.testing.assert_allclose(shares, [1.0, 0.8, 0.6, 0.4], rtol=1e-6)


@pytest.mark.parametrize("num_updates, num_chunks", [(150, 20), (7, 3), (3, 5), (1, 1)])
def test_chunks_make_up_the_training_and_follow_each_other(num_updates, num_chunks):
    parts = chunks(num_updates, num_chunks)
    assert len(parts) == num_chunks
    assert sum(part.num_updates for part in parts) == num_updates
    assert (parts[0].start, parts[-1].end) == (0.0, 1.0)
    for part, after in itertools.pairwise(parts):
        assert part.end == after.start
    for part in parts:
        share = part.end - part.start
        np.testing.assert_allclose(share * num_updates, part.num_updates, atol=1e-9)
        assert abs(part.num_updates - num_updates / num_chunks) < 1


def test_a_training_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one update and one chunk, got"):
        chunks(0, 3)
    with pytest.raises(ValueError, match="num_chunks=0"):
        chunks(3, 0)


def test_a_tolerance_is_met_only_beyond_the_noise_of_the_gap():
    budget, unknown = SolveBudget(tolerance=0.1), SolveReport.unknown()
    gap = lambda mean, error: dataclasses.replace(
        unknown, gap=jnp.float32(mean), gap_error=jnp.float32(error)
    )
    assert budget.met(gap(0.05, 0.02)) and not budget.met(gap(0.05, 0.03))
    assert not budget.met(unknown)
