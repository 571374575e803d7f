"""Environments with other numbers in their dynamics."""

from typing import TypeVar

import equinox as eqx

from hyperirl.environments import AbstractWorld

E = TypeVar("E", bound=AbstractWorld)


def scaled(environment: E, name: str, factor: float) -> E:
    """The same environment with one of its arrays multiplied; compiles nothing."""
    where = lambda e: getattr(e, name)
    return eqx.tree_at(where, environment, where(environment) * factor)
