"""When a run has nothing more to gain."""

from collections.abc import Sequence

import numpy as np

WINDOW = 10  # Steps that are compared with as many before them.


def has_settled(nll: Sequence[float | None], window: int = WINDOW) -> bool:
    """Whether the held-out NLL has stopped falling beyond its noise.

    The mean of the last steps is held against that of the steps before. It has settled
    if the fall is not larger than its own standard error. A steady fall is larger,
    however slow it is.

    Args:
        nll: Of every step so far; `None` or NaN where it is not known.
        window: How many steps a mean is of.
    """
    known = np.asarray(
        [np.nan if x is None else x for x in list(nll)[-2 * window :]], float
    )
    if len(known) < 2 * window or not np.all(np.isfinite(known)):
        return False
    before, after = known[:window], known[window:]
    fall = before.mean() - after.mean()
    error = np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / window)
    return bool(fall <= error)
