"""Long demonstrations in segments, each of which counts like an episode.

At a discount of 0.99 a step after the 500th counts for less than a hundredth of the
first: of a long episode little more than its beginning would be learned from. A segment
is discounted from its own first step. One that does not reach the end of its episode is
cut off, not terminated: the task goes on.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.flat import from_flat, to_flat
from hyperirl.demos.starts import starting_at
from hyperirl.environments import AbstractWorld


def usual_segment(horizon: int, discount: float) -> int:
    """How long segments are where nobody says; 0: episodes are short enough as a whole.

    Twice the time that the discount looks ahead, if an episode is twice as long again.
    """
    ahead = 1 / (1 - discount)
    return round(2 * ahead) if horizon >= 4 * ahead else 0


def cut_into(demos: Demos, counts: Sequence[int] | np.ndarray) -> Demos:
    """The same steps, each episode in so many segments of about the same length.

    The observation after a segment is the first one of the next.
    """
    flat = to_flat(demos)
    lengths = flat["lengths"]
    starts = np.cumsum(lengths + 1) - lengths - 1  # Of the episodes' observations.
    rows, cut, terminated = [], [], []
    for episode, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        for steps in np.array_split(np.arange(length), counts[episode]):
            rows.append(start + np.append(steps, steps[-1] + 1))
            cut.append(len(steps))
            ends = steps[-1] == length - 1
            terminated.append(bool(ends and flat["terminated"][episode]))
    flat |= {
        "observations": flat["observations"][np.concatenate(rows)],
        "lengths": np.asarray(cut, np.int32),
        "terminated": np.asarray(terminated),
    }
    return from_flat(flat, demos.provenance)


def _counts(demos: Demos, length: int) -> np.ndarray:
    """How many segments of at most so many steps each episode has."""
    return -(-np.asarray(demos.trajectories.lengths) // length)


def segmented(demos: Demos, length: int) -> Demos:
    """The same steps in segments of at most `length` of them."""
    return cut_into(demos, _counts(demos, length))


def agents_of(environment: AbstractWorld, demos: Demos, length: int) -> AbstractWorld:
    """The task, entered where the segments of demonstrations are.

    The first segment of an episode starts where the task does; a share of the agent's
    episodes that is that of the others starts where one of those does. So agent and
    expert start alike. A world that cannot start there always starts as the task does.
    """
    counts = _counts(demos, length)
    later = np.arange(counts.sum())
    later = np.setdiff1d(later, np.cumsum(counts) - counts)
    if not (environment.can_start_anywhere and len(later)):
        return environment
    first = segmented(demos, length).trajectories.observations[:, 0]
    share = len(later) / counts.sum()
    return starting_at(environment, first[jnp.asarray(later)], share, length)
