"""How figures look: the colors of the report, and marks that survive a printer."""

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperirl.experiments.numbers import mean_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's, in the order of the report; dashes and marks tell them apart in gray.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#b5548a", "#b07700", "#3a8fc4", "#1b1f24")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3)), "--", ":")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
_STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e7eaee",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "hyperirl",  # The same figure is the same file.
}


def check_matplotlib() -> None:
    """A sentence if figures cannot be drawn: for before the work, not after it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ValueError(
            "Figures need matplotlib, which is not installed; run `pip install "
            "'hyperirl[figures]'`."
        ) from error


def render(
    draw: Callable[["Figure"], None], size: tuple[float, float]
) -> dict[str, bytes]:
    """The figure as `svg` and `png`."""
    check_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    files = {}
    style: Any = _STYLE
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, dpi=150, metadata=metadata)
            files[kind] = file.getvalue()
    return files


def line(
    axes: "Axes",
    index: int,
    label: str,
    x: Sequence[int | float],
    values: Sequence[Any],
) -> None:
    """A line through means, with bars for their intervals."""
    y = np.array([mean_of(value) for value in values])
    ends = [
        (value["low"], value["high"])
        if isinstance(value, dict) and value.get("low") is not None
        else (mean_of(value), mean_of(value))
        for value in values
    ]
    low, high = np.array(ends, float).T
    axes.errorbar(
        x,
        y,
        yerr=np.maximum(np.stack([y - low, high - y]), 0),
        label=label,
        capsize=2.5,
        linewidth=1.5,
        markersize=4.5,
        color=COLORS[index % len(COLORS)],
        linestyle=DASHES[index % len(DASHES)],
        marker=MARKS[index % len(MARKS)],
    )


def compress_beyond(axes: "Axes", threshold: float) -> None:
    """Logarithms beyond plus or minus the threshold, if anything is there."""
    if max(map(abs, axes.get_ylim())) > threshold:
        axes.set_yscale("symlog", linthresh=threshold)


def bars(
    axes: "Axes", index: int, count: int, label: str, values: Sequence[Any]
) -> None:
    """One bar of a group of `count` for each value, with its interval."""
    x = np.arange(len(values)) + (index - (count - 1) / 2) * 0.8 / count
    y = np.array([mean_of(value) for value in values])
    color = COLORS[index % len(COLORS)]
    hatch = ("", "///", "...", "\\\\\\", "xx", "--", "++")[index % 7]
    axes.bar(x, y, 0.8 / count, label=label, color=color, hatch=hatch, edgecolor="#fff")
    for at, value in zip(x, values, strict=True):
        if isinstance(value, dict) and value.get("low") is not None:
            ends = [value["low"], value["high"]]
            axes.plot([at, at], ends, color="#1b1f24", linewidth=1)


def band(
    axes: "Axes", index: int, label: str, curves: Sequence[tuple[Any, Any]], count=80
) -> None:
    """The mean of several curves over the same axis, and their range."""
    curves = [(np.asarray(x, float), np.asarray(y, float)) for x, y in curves if len(x)]
    if not curves:
        return
    end = max(float(x[-1]) for x, _ in curves)
    grid = np.linspace(min(float(x[0]) for x, _ in curves), end, count)
    inside = [np.where(grid <= x[-1], np.interp(grid, x, y), np.nan) for x, y in curves]
    inside = np.stack(inside)
    enough = np.isfinite(inside).sum(axis=0) * 2 >= len(curves)
    grid, inside = grid[enough], inside[:, enough]
    color, dash = COLORS[index % len(COLORS)], DASHES[index % len(DASHES)]
    mean = np.nanmean(inside, axis=0)
    axes.plot(grid, mean, color=color, linestyle=dash, label=label)
    low, high = np.nanmin(inside, axis=0), np.nanmax(inside, axis=0)
    axes.fill_between(grid, low, high, color=color, alpha=0.15, linewidth=0)
