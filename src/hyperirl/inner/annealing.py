"""A whole training as a row of solves, so that its rates can follow any schedule.

Within one solve the rates of `PPO` fall linearly to `final_rate`. A training that is
longer than that, or whose rates fall otherwise, or that is looked at on its way, is
done in chunks, each with a solver for the shares of the training that it lies between:

    for i, chunk in enumerate(chunks(num_updates, num_chunks)):
        solver = PPO(
            learning_rate=rate(chunk.start),
            final_rate=rate(chunk.end) / rate(chunk.start),
        )
        key = jr.fold_in(key, i)
        state, report = solver.solve(..., state, problem, chunk.num_updates, key=key)

Rates are arrays, so that the chunks run one program.
"""

import itertools
from typing import NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """A part of a training."""

    num_updates: int
    start: float
    """The share of the training that is done before it..."""
    end: float
    """...and after it."""


def chunks(num_updates: int, num_chunks: int) -> tuple[Chunk, ...]:
    """Splits a training of so many updates into parts of about equal size.

    If there are more chunks than updates, some are empty.
    """
    if num_updates < 1 or num_chunks < 1:
        raise ValueError(
            "A training has at least one update and one chunk, got "
            f"num_updates={num_updates} and num_chunks={num_chunks}."
        )
    ends = np.linspace(0, num_updates, num_chunks + 1).astype(int).tolist()
    return tuple(
        Chunk(end - start, start / num_updates, end / num_updates)
        for start, end in itertools.pairwise(ends)
    )
