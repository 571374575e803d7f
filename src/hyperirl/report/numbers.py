"""Numbers for people: short text, and the ticks of an axis."""

import math

import numpy as np


def text(value: float, digits: int = 4) -> str:
    """`digits` significant digits, without needless zeros; a dash for NaN."""
    if not math.isfinite(value):
        return "–"
    if value and not 1e-3 <= abs(value) < 10 ** max(digits, 5):
        mantissa, exponent = f"{value:.{min(digits, 3) - 1}e}".split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    decimals = digits if not value else digits - 1 - math.floor(math.log10(abs(value)))
    rounded = f"{value:.{max(decimals, 0)}f}"
    if "." in rounded:
        rounded = rounded.rstrip("0").rstrip(".")
    return rounded.replace("-", "−")


def duration(seconds: float) -> str:
    """Such as `1 min 20 s`."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{text(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within the limits, at most `most`."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power > raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten, or 1, 2 and 5 times those when there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / most))
    within = lambda ticks: [t for t in ticks if low * 0.999 <= t <= high * 1.001]
    powers = within([10.0**e for e in range(first, last + 1, every)])
    if len(powers) >= 3:
        return powers
    finer = within([m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)])
    return finer if len(finer) >= 2 else linear_ticks(low, high, most)


def thin(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` points, which keep the lowest and highest of each stretch."""
    if len(x) <= most:
        return x, y
    kept = {0, len(x) - 1}
    for part in np.array_split(np.arange(len(x)), max(1, (most - 2) // 2)):
        kept |= {int(part[np.argmin(y[part])]), int(part[np.argmax(y[part])])}
    index = sorted(kept)
    return x[index], y[index]
