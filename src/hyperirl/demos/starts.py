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
    return starting_at(
        environment,
        jnp.asarray(seen[np.argsort(~taken, kind="stable")]),
        share,
        min(_STEPS, environment.horizon),
        count=int(taken.sum()),
    )


def starting_at(
    environment: AbstractWorld,
    observations: Float[Array, "starts obs"],
    share: float | Float[Array, ""],
    horizon: int,
    *,
    count: int | None = None,
) -> AbstractWorld:
    """The same task; a share of its episodes starts where it looks like this.

    Args:
        environment: The task.
        observations: Where to start.
        share: Of the episodes that do.
        horizon: Where episodes are cut.
        count: How many of the observations there are, if padding follows them.
    """
    starts: dict[str, Any] = dict(
        observations=observations,
        count=jnp.asarray(len(observations) if count is None else count, jnp.int32),
        chance=jnp.asarray(share, jnp.float32),
        horizon=horizon,
    )
    if environment.is_stepped:
        world: Any = environment
        return world.starting_at(starts.pop("observations"), **starts)
    assert isinstance(environment, AbstractEnvironment)
    return OtherStarts(task=environment, **starts)
