"""The axes of a chart: from values to positions, ticks, grid and names."""

import dataclasses
from html import escape

import numpy as np

from hyperirl.report.numbers import linear_ticks, log_ticks, text


@dataclasses.dataclass(frozen=True)
class Axis:
    """Maps values to positions."""

    low: float
    high: float
    start: int
    end: int
    log: bool = False

    def __call__(self, value: np.ndarray) -> np.ndarray:
        """Positions, kept within reach of the axis."""
        scale = np.log10 if self.log else np.asarray
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + (self.end - self.start) * np.clip(share, -0.01, 1.01)

    def at(self, value: float) -> float:
        """One position."""
        return float(self(np.array([value]))[0])

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis."""
        return (log_ticks if self.log else linear_ticks)(self.low, self.high, most)


def axis_of(
    values: np.ndarray, start: int, end: int, *, log: bool = False, zero: bool
) -> Axis:
    """An axis with a little room around the finite values."""
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if log and low > 0 and high / low > 8:
        return Axis(low / 1.15, high * 1.15, start, end, log=True)
    room = 0.05 * (high - low)
    if high - low <= 1e-9 * abs(high):  # Constant, up to rounding.
        room = 0.05 * abs(high) or 1.0
    if zero and low >= 0:
        return Axis(0.0, high + room, start, end)
    return Axis(low - room, high + room, start, end)


def frame(x: Axis, y: Axis, x_name: str, y_name: str, most: int = 6) -> str:
    """Grid, ticks and the names of the axes; without a name x has no numbers."""
    parts = []
    for tick in y.ticks(most):
        at = y.at(tick)
        parts.append(
            f'<path class="grid" d="M{x.start} {at:.1f}H{x.end}"/>'
            f'<text x="{x.start - 6}" y="{at + 4:.1f}" class="end">{text(tick)}</text>'
        )
    for tick in x.ticks(6) if x_name else ():
        at = x.at(tick)
        parts.append(
            f'<path class="tick" d="M{at:.1f} {y.start}v4"/>'
            f'<text x="{at:.1f}" y="{y.start + 17}" class="mid">{text(tick)}</text>'
        )
    name = f"{y_name}, log scale" if y.log else y_name
    parts.append(
        f'<path class="axis" d="M{x.start} {y.end}V{y.start}H{x.end}"/>'
        f'<text x="{(x.start + x.end) / 2}" y="{y.start + 36}" class="mid name">'
        f'{escape(x_name)}</text><text class="mid name" '
        f'transform="translate(12 {(y.start + y.end) / 2}) rotate(-90)">'
        f"{escape(name)}</text>"
    )
    return "".join(parts)


def points(x: Axis, y: Axis, x_values: np.ndarray, y_values: np.ndarray) -> str:
    """Positions as SVG writes them."""
    pairs = zip(x(x_values), y(y_values), strict=True)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
