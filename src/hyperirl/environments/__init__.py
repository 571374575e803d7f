"""Environments: compiled, functional, with their true rewards."""

from collections.abc import Callable

import jax.random as jr

from hyperirl.environments.cartpole import CartPole as CartPole
from hyperirl.environments.environment import AbstractEnvironment as AbstractEnvironment
from hyperirl.environments.environment import Transition as Transition
from hyperirl.environments.lqr import LQR as LQR
from hyperirl.environments.lqr import random_lqr as random_lqr
from hyperirl.environments.pendulum import Pendulum as Pendulum
from hyperirl.environments.starts import OtherStarts as OtherStarts
from hyperirl.environments.tabular import Tabular as Tabular
from hyperirl.environments.tabular import grid_world as grid_world
from hyperirl.environments.tabular import random_mdp as random_mdp

_NAMED: dict[str, Callable[..., AbstractEnvironment]] = {
    "cartpole": CartPole,
    "cartpole-fixed": lambda **options: CartPole(terminates=False, **options),
    "lqr": LQR,
    "lqr-clipped": lambda **options: LQR(max_action=5.0, max_norm=50.0, **options),
    "pendulum": Pendulum,
    "tabular": lambda seed=0, **options: random_mdp(key=jr.key(seed), **options),
    "grid-world": grid_world,
}
names: tuple[str, ...] = tuple(_NAMED)

# In units of the reward. A step of Pendulum can cost 16: at the paper's temperature its
# soft-optimal policy hardly chooses any more, and no likelihood can be learned.
_PAPER_TEMPERATURE = 0.1
_TEMPERATURES = {"pendulum": 1.0}


def usual_temperature(name: str) -> float:
    """How much entropy is worth in an environment, where nothing else is said."""
    return _TEMPERATURES.get(name, _PAPER_TEMPERATURE)


def make(name: str, **options) -> AbstractEnvironment:
    """The environment of that name.

    Args:
        name: One of `names`.
        **options: What to change about it, such as `half_length=1.0`: fields of the
            environment, or arguments of `random_mdp` (and `seed`) and `grid_world`.
    """
    if name not in _NAMED:
        raise ValueError(
            f"There is no environment {name!r}. Choose one of {', '.join(names)}."
        )
    try:
        return _NAMED[name](**options)
    except TypeError as error:
        raise ValueError(f"{name} does not take these options: {error}.") from error
