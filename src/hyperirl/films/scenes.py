"""How the moments of an episode look.

A scene is what an environment is drawn as: CartPole and Pendulum as they are, any other
as curves of what is observed. A class of your own is registered with
`scene.register(MyEnvironment)`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from hyperirl.environments import AbstractWorld, CartPole, Pendulum
from hyperirl.films.canvas import BLUE, COLORS, INK, ORANGE, RULE, SOFT, Canvas, Point

WIDTH, HEIGHT = 480, 240


@dataclasses.dataclass(frozen=True)
class Episode:
    """One episode, without padding."""

    observations: np.ndarray
    """One more than actions."""
    actions: np.ndarray
    rewards: np.ndarray | None = None
    """Of a learned reward, if there is one to show."""

    @property
    def num_steps(self) -> int:
        """How many actions were taken."""
        return len(self.actions)


Scene = Callable[[int], Canvas]
"""Draws the moment at which the action of that number is taken."""


@functools.singledispatch
def scene(environment: AbstractWorld, episode: Episode) -> Scene:
    """How an episode in this environment is drawn: as curves, if nothing else is known.

    What is left of the moment has happened; the actions are below.
    """
    seen, actions = episode.observations[:-1], episode.actions
    rows = [*_curves(seen)[:6], *_curves(actions.reshape(len(actions), -1))[:2]]
    num_seen = len(rows) - min(actions.reshape(len(actions), -1).shape[1], 2)
    across = np.linspace(40, WIDTH - 20, max(len(seen), 2))
    step = (HEIGHT - 20) / len(rows)

    def draw(moment: int) -> Canvas:
        canvas = Canvas(WIDTH, HEIGHT, (WIDTH / 2, HEIGHT / 2), 1.0)
        for i, row in enumerate(rows):
            bottom = HEIGHT - 12 - (i + 1) * step
            heights = bottom + 3 + (step - 8) * row
            points = list(zip(across.tolist(), heights.tolist(), strict=False))
            name = f"o{i}" if i < num_seen else f"a{i - num_seen}"
            canvas.text((12, bottom + step / 2 + 7), name)
            if len(points) > 1:
                canvas.line(points, RULE, 1.5)
            color = COLORS[0] if i < num_seen else COLORS[1]
            if moment:
                canvas.line(points[: moment + 1], color)
            canvas.circle(points[moment], 3.5, color)
        return canvas

    return draw


def _curves(columns: np.ndarray) -> list[np.ndarray]:
    """Each column from 0 to 1."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return list(((columns - low) / span).T)


@scene.register
def _(environment: CartPole, episode: Episode) -> Scene:
    """The cart, its pole, the end of the track and which way it is pushed."""
    limit, half_length = float(environment.track_limit), float(environment.half_length)
    unit = WIDTH / (2.3 * limit)

    def draw(moment: int) -> Canvas:
        x, _, angle, _ = episode.observations[moment].tolist()
        canvas = Canvas(WIDTH, HEIGHT, (0.0, 0.75), unit)
        canvas.line([(-limit, 0.0), (limit, 0.0)], RULE, 3)
        for end in (-limit, limit):
            canvas.line([(end, -0.08), (end, 0.08)], SOFT, 3)
        push = 1 if episode.actions[moment] == 1 else -1
        canvas.arrow((x + 0.28 * push, 0.14), (x + 0.5 * push, 0.14), ORANGE)
        canvas.box((x, 0.14), 0.5, 0.26, INK)
        length = 2 * half_length
        tip = (x + length * math.sin(angle), 0.2 + length * math.cos(angle))
        canvas.line([(x, 0.2), tip], BLUE, 9)
        canvas.circle((x, 0.2), 4, "#ffffff")
        return canvas

    return draw


@scene.register
def _(environment: Pendulum, episode: Episode) -> Scene:
    """The pole, and the torque as an arrow along a circle."""
    length = float(environment.length)
    unit = HEIGHT / (2.5 * length)

    def draw(moment: int) -> Canvas:
        cos, sin, _ = episode.observations[moment].tolist()
        torque = float(np.clip(episode.actions[moment][0], -2, 2))
        canvas = Canvas(WIDTH, HEIGHT, (0.0, 0.0), unit)
        rim = [_round(length, turn) for turn in np.linspace(0, 2 * math.pi, 90)]
        canvas.line(rim, RULE, 1.5)
        # Angles are counted from the top, and grow against the clock.
        canvas.line([(0.0, 0.0), (-length * sin, length * cos)], BLUE, 12)
        if abs(torque) > 0.05:
            turns = np.linspace(0, torque / 2 * 0.6 * math.pi, 20)
            arc = [_round(0.4 * length, turn) for turn in turns]
            canvas.line(arc, ORANGE, 3)
            canvas.arrow(arc[-2], arc[-1], ORANGE)
        canvas.circle((0.0, 0.0), 5, INK)
        return canvas

    return draw


def _round(radius: float, turn: float) -> Point:
    """On a circle, this far from its top."""
    return -radius * math.sin(turn), radius * math.cos(turn)
