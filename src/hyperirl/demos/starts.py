"""Episodes that start where others have been."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hyperirl.environments import AbstractEnvironment, OtherStarts
from hyperirl.trajectories import Trajectories

_STEPS = 128  # Of an episode that may start in another state.


def starting_in(
    environment: AbstractEnvironment,
    trajectories: Trajectories,
    share: float | Float[Array, ""],
) -> OtherStarts:
    """The same task; a share of its episodes starts in states of some trajectories.

    Episodes are cut after 128 steps: there are others that start later. Trajectories of
    the same padded sizes give the same shapes, however many steps they have.
    """
    taken = np.asarray(trajectories.mask).ravel()
    seen = np.asarray(trajectories.observations[:, :-1])
    seen = seen.reshape(taken.size, -1)
    return OtherStarts(
        task=environment,
        observations=jnp.asarray(seen[np.argsort(~taken, kind="stable")]),
        count=jnp.asarray(taken.sum(), jnp.int32),
        chance=jnp.asarray(share, jnp.float32),
        horizon=min(_STEPS, environment.horizon),
    )
