"""Means with 95 % intervals, as plain numbers."""

from typing import Any

import numpy as np

_NUM_DRAWS = 2000
_TAILS = (2.5, 97.5)


def interval(values: Any) -> dict[str, float | int | None]:
    """The mean and its 95 % bootstrap interval.

    Args:
        values: One axis of independent values; or two, seeds and episodes, of which
            both are resampled. A single value has no interval.
    """
    values = np.asarray(values, np.float64)
    mean, count = float(values.mean()), int(values.size)
    if count == 1:
        return {"mean": mean, "low": None, "high": None, "n": 1}
    rng = np.random.default_rng(0)
    weights = [
        rng.multinomial(size, np.full(size, 1 / size), _NUM_DRAWS) / size
        for size in values.shape
    ]
    if values.ndim == 1:
        draws = weights[0] @ values
    else:
        draws = np.einsum("se,ds,de->d", values, *weights)
    low, high = np.percentile(draws, _TAILS)
    return {"mean": mean, "low": float(low), "high": float(high), "n": count}


def percentiles(point: float, draws: Any, count: int) -> dict[str, Any]:
    """A statistic and the 95 % interval of its bootstrap draws.

    Args:
        point: The statistic itself.
        draws: Those of resampled data; undefined ones are left out.
        count: Of what was resampled.
    """
    draws = np.asarray(draws, np.float64)
    draws = draws[np.isfinite(draws)]
    if not np.isfinite(point) or not draws.size:
        return {"mean": None, "low": None, "high": None, "n": count}
    low, high = np.percentile(draws, _TAILS)
    return {"mean": float(point), "low": float(low), "high": float(high), "n": count}


def picks(count: int, num_draws: int = 500) -> np.ndarray:
    """Numbers below `count`, with repetition: one bootstrap sample a row."""
    return np.random.default_rng(0).integers(0, count, (num_draws, count))
