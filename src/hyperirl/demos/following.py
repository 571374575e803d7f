"""Whether each observation follows from the one before it."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.demos.demos import Demos
from hyperirl.environments import AbstractEnvironment, AbstractWorld


def share_astray(demos: Demos, environment: AbstractWorld) -> float | None:
    """How many of the first steps lead elsewhere; `None` if that is not known.

    It is not where it depends on chance, or where the host steps the world.
    """
    if environment.is_stepped or not environment.can_start_anywhere:
        return None
    assert isinstance(environment, AbstractEnvironment)
    batch = demos.trajectories
    mask = np.array(batch.mask)
    if "last observations" in demos.provenance.missing:
        mask[np.arange(len(mask)), np.asarray(batch.lengths) - 1] = False
    places = np.argwhere(mask)[:500]
    if not len(places):
        return None
    episodes, steps = places.T
    now, actions = batch.observations[episodes, steps], batch.actions[episodes, steps]
    after = np.asarray(batch.observations[episodes, steps + 1], np.float64)
    led = [_lead(environment, now, actions, jr.key(seed)) for seed in (0, 1)]
    first, second = (np.asarray(there, np.float64) for there in led)
    if np.any(first != second):
        return None
    moved = np.linalg.norm(first - np.asarray(now, np.float64), axis=1)
    astray = np.linalg.norm(first - after, axis=1) > 0.01 * moved + 1e-3
    return float(np.mean(astray))


@eqx.filter_jit
def _lead(
    environment: AbstractEnvironment,
    observations: Float[Array, "steps obs"],
    actions: Array,
    key: PRNGKeyArray,
) -> Float[Array, "steps obs"]:
    """What is seen next, if the environment is in the state that looks like this."""

    def one(observation: Float[Array, " obs"], action: Array) -> Float[Array, " obs"]:
        state = environment.state_of(observation)
        return environment.observe(environment.advance(state, action, key=key)[0])

    return jax.vmap(one)(observations, actions)
