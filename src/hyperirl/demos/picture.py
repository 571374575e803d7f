"""Demonstrations as a picture: how long, how good, what was seen and what was done."""

import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.trajectories import returns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GRAY = "#0072b2", "#d55e00", "#9aa4af"
_MAX_PANELS = 24  # Of observations, and of actions.
_COLUMNS = 4
_NUM_TRACES = 3


def size_of(demos: Demos) -> tuple[float, float]:
    """How large the picture must be, in inches."""
    rows = sum(math.ceil(n / _COLUMNS) for n in _panels(demos))
    return 3.0 * _COLUMNS, 0.7 + 2.1 * rows


def _panels(demos: Demos) -> tuple[int, int, int]:
    """How many there are: of episodes, of observations and of actions."""
    batch = demos.trajectories
    seen = min(batch.observations.shape[-1], _MAX_PANELS)
    done = 0 if batch.discrete else min(batch.actions.shape[-1], _MAX_PANELS)
    return 2 + (batch.rewards is not None), seen, done


def draw(figure: "Figure", demos: Demos, title: str) -> None:
    """Draws on an empty figure of matplotlib, of the size `size_of` says."""
    batch, mask = demos.trajectories, np.asarray(demos.trajectories.mask)
    lengths = np.asarray(batch.lengths)
    steps = f"{demos.num_episodes} episodes, {lengths.sum()} steps"
    key = "by step: the median, nine of ten episodes (band), some episodes (gray)"
    figure.suptitle(f"{title}: {steps}\n{key}", x=0.01, ha="left", fontsize="medium")
    places = _places(figure, demos)
    _histogram(next(places), lengths, "length of an episode", whole=True)
    if batch.rewards is not None:
        _histogram(next(places), returns(batch, batch.rewards), "return of an episode")
    actions = np.asarray(batch.actions)
    if batch.discrete:
        _shares(next(places), actions[mask])
    else:
        _histogram(next(places), actions[mask].ravel(), "actions, all components")
    seen = np.asarray(batch.observations)[:, :-1]
    for i in range(min(seen.shape[-1], _MAX_PANELS)):
        _traces(next(places), seen[..., i], mask, f"observation {i}", _BLUE)
    if not batch.discrete:
        for i in range(min(actions.shape[-1], _MAX_PANELS)):
            _traces(next(places), actions[..., i], mask, f"action {i}", _ORANGE)


def _places(figure: "Figure", demos: Demos) -> Iterator["Axes"]:
    """Panels, row by row; what is of another kind starts a new row."""
    groups = _panels(demos)
    rows = [math.ceil(panels / _COLUMNS) for panels in groups]
    grid = figure.add_gridspec(sum(rows), _COLUMNS)
    for group, panels in enumerate(groups):
        for i in range(panels):
            row = sum(rows[:group]) + i // _COLUMNS
            yield figure.add_subplot(grid[row, i % _COLUMNS])


def _histogram(axes: "Axes", values, title: str, *, whole: bool = False) -> None:
    values = np.asarray(values, np.float64)
    axes.hist(values, bins=min(30, max(5, len(np.unique(values)))), color=_GRAY)
    axes.set_title(title)
    axes.set_yticks([])
    axes.locator_params(axis="x", integer=whole)


def _shares(axes: "Axes", actions: np.ndarray) -> None:
    counts = np.bincount(actions) / len(actions)
    axes.bar(np.arange(len(counts)), counts, color=_GRAY)
    axes.set_title("share of each action")
    if len(counts) <= 12:
        axes.set_xticks(np.arange(len(counts)))


def _traces(
    axes: "Axes", values: np.ndarray, mask: np.ndarray, title: str, color: str
) -> None:
    """Where nine of ten episodes are at each step, the median, and some episodes."""
    alive = np.where(mask, values.astype(np.float64), np.nan)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        low, middle, high = np.nanquantile(alive, [0.05, 0.5, 0.95], axis=0)
    steps = np.arange(mask.shape[1])
    axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
    for episode in alive[:_NUM_TRACES]:
        axes.plot(steps, episode, color=_GRAY, linewidth=0.4)
    axes.plot(steps, middle, color=color, linewidth=1.2)
    axes.set_title(title)
