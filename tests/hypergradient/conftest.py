"""An MDP so small that all its episodes are enumerated; nothing of it is sampled."""

import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import Tabular
from hyperirl.problem import Problem
from hyperirl.trajectories import Trajectories

HORIZON = 3


@pytest.fixture(scope="module")
def mdp() -> Tabular:
    """Two states, two actions; one action may stop the task."""
    transitions = np.array([[[0.5, 0.5], [0, 1]], [[0.5, 0], [0.5, 0.5]]])
    return Tabular(
        transitions=jnp.asarray(transitions),
        rewards=jnp.zeros((2, 2)),
        initial=jnp.array([0.5, 0.5]),
        horizon=HORIZON,
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(jnp.float64(0.3), jnp.float64(0.8))


@pytest.fixture(scope="module")
def everything(mdp) -> Trajectories:
    """Each episode of the uniform policy, as many times as it is likely."""
    episodes, chances = exact.tabular.enumerate_episodes(
        mdp, jnp.zeros((2, 2)), HORIZON
    )
    copies = np.asarray(chances) * 2**10
    np.testing.assert_allclose(copies, np.round(copies), atol=1e-9)
    counts = np.round(copies).astype(int)
    return episodes[np.repeat(np.arange(len(counts)), counts)]
