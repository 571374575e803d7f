"""Gymnasium's spaces, read as vectors of numbers where nothing is lost by it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from hyperirl.spaces import ActionSpace, Box, Discrete

_EXACT = 2**24  # Integers up to here are numbers of `float32`.


class Reader(NamedTuple):
    """How observations of a space become vectors."""

    size: int
    read: Callable[[Any, int], np.ndarray]
    """Observations of that many environments at once; of one of them, by itself."""


@functools.singledispatch
def reader(space: spaces.Space) -> Reader:
    """How to read the observations of a space."""
    raise ValueError(
        f"Observations of the space {space} are not supported: make vectors of them "
        "with gymnasium.wrappers.TransformObservation."
    )


@reader.register(spaces.Box)
def _(space: Any) -> Reader:
    if len(space.shape) == 3 and space.dtype == np.uint8:
        raise ValueError(
            f"Observations of the shape {space.shape} are images, and hyperirl reads "
            "vectors; compute some numbers from each image with "
            "gymnasium.wrappers.TransformObservation."
        )
    if np.issubdtype(space.dtype, np.integer):
        largest = max(abs(int(space.low.min())), abs(int(space.high.max())))
        if largest > _EXACT:
            raise ValueError(
                f"Observations of the space {space} are not supported: integers beyond "
                f"{_EXACT} would be rounded; scale them down with "
                "gymnasium.wrappers.TransformObservation."
            )
    read = lambda x, count: np.asarray(x, np.float64).reshape(count, -1)
    return Reader(int(np.prod(space.shape)), read)


@reader.register(spaces.Discrete)
def _(space: Any) -> Reader:
    return _one_hot(int(space.n), int(space.start))


@reader.register(spaces.MultiBinary)
def _(space: Any) -> Reader:
    read = lambda x, count: np.asarray(x, np.float64).reshape(count, -1)
    return Reader(int(np.prod(space.shape)), read)


@reader.register(spaces.MultiDiscrete)
def _(space: Any) -> Reader:
    starts = np.asarray(space.start).ravel()
    parts = [
        _one_hot(int(n), int(start))
        for n, start in zip(space.nvec.ravel(), starts, strict=True)
    ]

    def read(x: Any, count: int) -> np.ndarray:
        columns = np.asarray(x).reshape(count, -1).T
        each = [
            part.read(column, count)
            for part, column in zip(parts, columns, strict=True)
        ]
        return np.concatenate(each, axis=1)

    return Reader(sum(part.size for part in parts), read)


@reader.register(spaces.Tuple)
def _(space: Any) -> Reader:
    return _joined(dict(enumerate(space.spaces)))


@reader.register(spaces.Dict)
def _(space: Any) -> Reader:
    return _joined(dict(space.spaces))


def _joined(parts: dict[Any, spaces.Space]) -> Reader:
    """One after the other, in the order of the space."""
    readers = {name: reader(part) for name, part in parts.items()}

    def read(x: Any, count: int) -> np.ndarray:
        each = [part.read(x[name], count) for name, part in readers.items()]
        return np.concatenate(each, axis=1)

    return Reader(sum(part.size for part in readers.values()), read)


def _one_hot(number: int, start: int) -> Reader:
    rows = np.eye(number)
    return Reader(number, lambda x, count: rows[np.asarray(x).reshape(count) - start])


class Writer(NamedTuple):
    """How our actions become those of a space."""

    space: ActionSpace
    write: Callable[[np.ndarray], np.ndarray]
    """Actions of many environments at once."""


@functools.singledispatch
def writer(space: spaces.Space) -> Writer:
    """How to write actions of a space."""
    raise ValueError(
        f"Actions of the space {space} are not supported: make them one choice or one "
        "vector of real numbers with gymnasium.wrappers.TransformAction."
    )


@writer.register(spaces.Discrete)
def _(space: Any) -> Writer:
    shift = lambda actions: actions.astype(space.dtype) + space.start
    return Writer(Discrete(int(space.n)), shift)


@writer.register(spaces.Box)
def _(space: Any) -> Writer:
    if not np.issubdtype(space.dtype, np.floating):
        raise ValueError(
            f"Actions of the space {space} are not supported: they are integers; make "
            "them real numbers with gymnasium.wrappers.TransformAction."
        )
    low, high = np.unique(space.low), np.unique(space.high)
    if low.size > 1 or high.size > 1:
        raise ValueError(
            f"Actions of the space {space} are not supported: their numbers have "
            "different bounds; give them the same with "
            "gymnasium.wrappers.RescaleAction(env, -1, 1)."
        )

    def write(actions: np.ndarray) -> np.ndarray:
        actions = np.clip(actions, low[0], high[0]).astype(space.dtype)
        return actions.reshape(-1, *space.shape)

    size = int(np.prod(space.shape))
    return Writer(Box(size, float(low[0]), float(high[0])), write)
