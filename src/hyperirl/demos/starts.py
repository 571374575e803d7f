"""Episodes that start where others have been."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl.environments import AbstractEnvironment, AbstractWorld, OtherStarts
from hyperirl.trajectories import Trajectories

_STEPS = 128  # Of an episode that may start in another state.


def starting_in(
    environment: AbstractWorld,
    trajectories: Trajectories,
    share: float | Float[Array, ""],
) -> AbstractWorld:
    """The same task; a share of its episodes starts in states of some trajectories.

    Episodes are cut after 128 steps: there are others that start later. Trajectories of
    the same padded sizes give the same shapes, however many steps they have.
    """
    taken = np.asarray(trajectories.mask).ravel()
    seen = np.asarray(trajectories.observations[:, :-1])
    seen = seen.reshape(taken.size, -1)
    starts: dict[str, Any] = dict(
        observations=jnp.asarray(seen[np.argsort(~taken, kind="stable")]),
        count=jnp.asarray(taken.sum(), jnp.int32),
        chance=jnp.asarray(share, jnp.float32),
        horizon=min(_STEPS, environment.horizon),
    )
    if environment.is_stepped:
        world: Any = environment
        return world.starting_at(starts.pop("observations"), **starts)
    assert isinstance(environment, AbstractEnvironment)
    return OtherStarts(task=environment, **starts)
