"""The one way in which demonstrations are dealt out: to learn, to select, to judge."""

from typing import NamedTuple

from hyperirl.demos.demos import Demos, split

_SHARES = (0.7, 0.15, 0.15)


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


def split_demos(demos: Demos, seed: int) -> Parts:
    """70 % to learn from, 15 % to select by and 15 % to evaluate on, by episodes.

    The same seed gives the same parts, so that an evaluation of a run finds the
    episodes that the run has not seen.
    """
    return Parts(*split(demos, _SHARES, seed=seed))
