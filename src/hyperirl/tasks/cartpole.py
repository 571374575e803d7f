"""CartPole, with and without an end."""

from typing import Any

import jax.numpy as jnp

from hyperirl.environments import AbstractWorld, CartPole
from hyperirl.options import Options
from hyperirl.tasks.practice import scattered
from hyperirl.tasks.task import Axis, Plane, Task
from hyperirl.tasks.variants import scaled

_INPUTS = ("position (m)", "velocity (m/s)", "angle (rad)", "angular velocity (rad/s)")
_PLANE = Plane(
    Axis(_INPUTS[2], coordinate=2),
    Axis(_INPUTS[3], coordinate=3),
    lambda angle, spin: jnp.stack([jnp.zeros_like(angle)] * 2 + [angle, spin]),
)


def _variants(environment: AbstractWorld) -> dict[str, AbstractWorld]:
    return {
        "half_length x2": scaled(environment, "half_length", 2.0),
        "gravity x2": scaled(environment, "gravity", 2.0),
    }


def _task(name: str, environment: CartPole, options: Options, budget: int) -> Task:
    return Task(
        environment,
        name,
        options=options,
        budget=budget,
        demos=name,
        variants=_variants,
        practice=scattered,
        plane=_PLANE,
        input_names=_INPUTS,
        action_names=("push left", "push right"),
    )


def cartpole(**changes) -> Task:
    """The episode ends when the pole falls."""
    options = Options(
        temperature=0.1, segment=0, trust_region=False, step_kl=0.3, inner_updates=6
    )
    return _task("cartpole", CartPole(**changes), options, 1_000_000)


def cartpole_fixed(**changes) -> Task:
    """The episode goes on when the pole has fallen.

    An untrained policy is lost for the rest of it, and most of its experience teaches
    it nothing: training takes longer. The demonstrations show nothing of lost states
    either. A network pays for anything there, also for lying still; a polynomial that
    reaches there has learned it near the demonstrations.
    """
    settings: dict[str, Any] = {"terminates": False} | changes
    environment = CartPole(**settings)
    options = Options(
        method="matching",
        reward="polynomial",
        temperature=0.1,
        segment=0,
        trust_region=False,
        step_kl=0.3,
        demo_starts=0.63,
        lost_starts=0.07,
    )
    return _task("cartpole-fixed", environment, options, 4_000_000)
