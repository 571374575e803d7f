"""Objects that are handed in instead of named: what they are called and pinned by."""

import dataclasses
import hashlib
import types
import typing
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from hyperirl.curvature import AbstractSolver
from hyperirl.hypergradient import AbstractEstimator
from hyperirl.inner import AbstractInnerSolver
from hyperirl.policies import AbstractPolicy
from hyperirl.rewards import AbstractReward


@dataclasses.dataclass(frozen=True)
class Given:
    """Parts of a run that the user brings along; `None` is: made from the config."""

    reward: AbstractReward | None = None
    """What is learned, and where learning starts."""
    policy: AbstractPolicy | None = None
    """Of the inner problem, untrained."""
    inner: AbstractInnerSolver | None = None
    """Who solves the inner problem."""
    estimator: AbstractEstimator | None = None
    """Who estimates the hypergradient."""
    solver: AbstractSolver | None = None
    """Who solves for `v` in the Fisher estimator; with its own damping."""
    optimizer: optax.GradientTransformation | None = None
    """Of the reward's parameters, with its own learning rate."""

    def __post_init__(self):
        """Refuses what only looks like a part: a function, a class, a number."""
        for name, kind in typing.get_type_hints(type(self)).items():
            thing, (wanted, _) = getattr(self, name), typing.get_args(kind)
            if not isinstance(thing, kind):
                got = "the class itself" if isinstance(thing, type) else repr(thing)
                raise ValueError(
                    f"`{name}` must be an object whose class is derived from "
                    f"`{wanted.__name__}`, got {got}."
                )

    def described(self) -> dict[str, str]:
        """Class and hash of each object, by name."""
        return {
            field.name: describe(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is not None
        }


def describe(thing: Any) -> str:
    """What a thing is, and a hash of its content: equal things have equal ones."""
    digest = hashlib.sha256()
    for part in _content(thing, ()):
        digest.update(part)
        digest.update(b"\0")
    return f"{type(thing).__module__}.{type(thing).__qualname__} {digest.hexdigest()}"


def _content(thing: Any, above: tuple[int, ...]):
    """The numbers and names a thing is made of, as bytes, in a fixed order.

    Functions are made of their code and of what they have closed over. Anything that
    only its address tells apart counts by its type.
    """
    if id(thing) in above:
        return
    above = (*above, id(thing))
    yield f"{type(thing).__module__}.{type(thing).__qualname__}".encode()
    if isinstance(thing, jax.Array) and jnp.issubdtype(
        thing.dtype, jax.dtypes.prng_key
    ):
        thing = jr.key_data(thing)
    if isinstance(thing, jax.Array | np.ndarray | np.generic):
        array = np.asarray(thing)
        yield f"{array.dtype} {array.shape}".encode()
        yield array.tobytes()
    elif isinstance(thing, types.FunctionType):
        yield thing.__qualname__.encode()
        yield thing.__code__.co_code
        yield repr([c for c in thing.__code__.co_consts if _is_plain(c)]).encode()
        for cell in thing.__closure__ or ():
            yield from _content(cell.cell_contents, above)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            if field.compare:
                yield field.name.encode()
                yield from _content(getattr(thing, field.name), above)
    elif isinstance(thing, dict):
        for name in sorted(thing, key=repr):
            yield repr(name).encode()
            yield from _content(thing[name], above)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from _content(item, above)
    elif _is_plain(thing):
        yield repr(thing).encode()
    elif hasattr(thing, "__qualname__"):
        yield thing.__qualname__.encode()


def _is_plain(thing: Any) -> bool:
    return isinstance(thing, str | bytes | int | float | complex | bool | type(None))
