"""Changed dynamics: the same task in another world, to see if the reward carries over.

A clone of the expert fails there. A reward that says what is wanted does not.
"""

import equinox as eqx
import jax.numpy as jnp

from hyperirl.environments import LQR, AbstractEnvironment, CartPole, Pendulum


def changed_dynamics(
    environment: AbstractEnvironment,
) -> dict[str, AbstractEnvironment]:
    """Variants by name, with the same true reward; none for finite MDPs."""
    match environment:
        case CartPole():
            return {
                "half_length x2": _scaled(environment, "half_length", 2.0),
                "gravity x2": _scaled(environment, "gravity", 2.0),
            }
        case Pendulum():
            return {
                "mass x1.5": _scaled(environment, "mass", 1.5),
                "length x1.25": _scaled(environment, "length", 1.25),
            }
        case LQR():
            A = environment.A
            drift = 2 * A - jnp.eye(A.shape[0], dtype=A.dtype)
            return {
                "B x0.5": _scaled(environment, "B", 0.5),
                "A: drift x2": eqx.tree_at(lambda e: e.A, environment, drift),
            }
    return {}


def _scaled(environment: AbstractEnvironment, name: str, factor: float):
    where = lambda e: getattr(e, name)
    return eqx.tree_at(where, environment, where(environment) * factor)
