"""The one way in which demonstrations are dealt out: to learn, to select, to judge."""

from typing import NamedTuple

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.errors import DemosError
from hyperirl.demos.segments import cut_into
from hyperirl.trajectories import deal

_SHARES = (0.7, 0.15, 0.15)
_NUM_SEGMENTS = 20  # 14 to learn from, 3 to select by and 3 to evaluate on.


class Parts(NamedTuple):
    """Demonstrations by what they may be used for.

    Each part has its own floor, `expert_nll`, if the expert's log-probabilities are
    known.
    """

    train: Demos
    """What a reward is learned from."""
    valid: Demos
    """What decides when to stop and which reward to keep."""
    test: Demos
    """What an evaluation is made on; nothing else may look at it."""


def split_demos(demos: Demos, seed: int, test_seed: int | None = None) -> Parts:
    """70 % to learn from, 15 % to select by and 15 % to evaluate on, by episodes.

    One or two episodes are cut into segments first, which then count as episodes. The
    same seeds give the same parts, so that an evaluation of a run finds the episodes
    that the run has not seen.

    Args:
        demos: What to deal out.
        seed: Decides who goes where.
        test_seed: Decides alone what is evaluated on, if it is given: runs with other
            seeds have not seen it either.
    """
    if splits_by_time(demos):
        demos = segments(demos, _NUM_SEGMENTS)
    dealt = deal_out(demos.num_episodes, seed, test_seed)
    return Parts(*(demos[part] for part in dealt))


def deal_out(
    total: int, seed: int, test_seed: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the episodes in each part of `split_demos`."""
    test_seed = seed if test_seed is None else test_seed
    train, valid, test = deal(total, _SHARES, seed=test_seed)
    if test_seed != seed:
        rest, share = np.concatenate([train, valid]), _SHARES[0] + _SHARES[1]
        parts = deal(len(rest), (_SHARES[0] / share, _SHARES[1] / share), seed=seed)
        train, valid = (rest[part] for part in parts)
    return train, valid, test


def splits_by_time(demos: Demos) -> bool:
    """Whether there are too few episodes to give each part one of its own."""
    return demos.num_episodes < len(_SHARES)


def segments(demos: Demos, number: int) -> Demos:
    """The same steps, cut into about so many episodes of about the same length."""
    lengths = np.asarray(demos.trajectories.lengths)
    counts = np.round(number * lengths / np.sum(lengths)).astype(int)
    counts = np.clip(counts, 1, lengths)
    if np.sum(counts) < len(_SHARES):
        raise DemosError(
            f"{np.sum(lengths)} steps are too few to learn from, to select by and to "
            f"evaluate on; give at least {len(_SHARES)}."
        )
    return cut_into(demos, counts)
