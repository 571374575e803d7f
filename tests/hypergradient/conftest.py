"""An MDP so small that all its episodes are enumerated; nothing of it is sampled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import Tabular
from hyperirl.hypergradient import Adjoint
from hyperirl.lstd import Features, input_normalizer, random_features
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
    return _each_as_often_as_likely(mdp, HORIZON, 2**10)


@pytest.fixture(scope="module")
def cut_agents(mdp) -> Trajectories:
    """Two steps each, from other first states than those of the task."""
    elsewhere = eqx.tree_at(lambda m: m.initial, mdp, jnp.array([0.25, 0.75]))
    return _each_as_often_as_likely(elsewhere, 2, 2**8)


@pytest.fixture(scope="module")
def stationary() -> Tabular:
    """The uniform policy is in either state half of the time, from the start."""
    transitions = np.array([[[0.5, 0.5], [0, 1]], [[0.5, 0.5], [1, 0]]])
    return Tabular(
        transitions=jnp.asarray(transitions),
        rewards=jnp.zeros((2, 2)),
        initial=jnp.array([0.5, 0.5]),
        horizon=1,
    )


@pytest.fixture(scope="module")
def stationary_agent(stationary) -> Trajectories:
    """Single steps, with the states of episodes that go on for ever."""
    return _each_as_often_as_likely(stationary, 1, 16)


@pytest.fixture(scope="module")
def ending() -> Tabular:
    """Three states, two actions; every episode is over after three steps at most."""
    transitions = np.zeros((3, 2, 3))
    transitions[0] = [[0, 0.5, 0.5], [0, 1, 0]]
    transitions[1] = [[0, 0, 1], [0, 0, 0.5]]
    return Tabular(
        transitions=jnp.asarray(transitions),
        rewards=jnp.zeros((3, 2)),
        initial=jnp.array([0.5, 0.5, 0.0]),
        horizon=HORIZON,
    )


@pytest.fixture(scope="module")
def complete_episodes(ending) -> Trajectories:
    """Of the uniform policy, each as often as it is likely: none of them is cut."""
    episodes = _each_as_often_as_likely(ending, HORIZON, 2**8)
    assert episodes.terminated.all()
    return episodes


def _each_as_often_as_likely(mdp: Tabular, horizon: int, total: int) -> Trajectories:
    """All episodes of the uniform policy; `total` of them are exact averages."""
    episodes, chances = exact.tabular.enumerate_episodes(
        mdp, jnp.zeros(mdp.rewards.shape), horizon
    )
    copies = np.asarray(chances) * total
    np.testing.assert_allclose(copies, np.round(copies), atol=1e-9)
    counts = np.round(copies).astype(int)
    return episodes[np.repeat(np.arange(len(counts)), counts)]


@pytest.fixture(scope="module")
def expert() -> Trajectories:
    """A few demonstrations, inconsistent with the dynamics as finite ones are."""
    states = jr.randint(jr.key(3), (5, HORIZON + 1), 0, 2)
    return Trajectories(
        observations=jax.nn.one_hot(states, 2, dtype=jnp.float64),
        actions=jr.randint(jr.key(4), (5, HORIZON), 0, 2, jnp.int32),
        mask=jnp.ones((5, HORIZON), bool),
        terminated=jnp.zeros(5, bool),
    )


@pytest.fixture(scope="module")
def features(mdp, everything) -> Features:
    """A table in disguise: they tell every state and action from every other."""
    return random_features(
        input_normalizer(everything),
        mdp.action_space,
        key=jr.key(0),
        num_units=0,
        polynomial=1,
        dtype=jnp.float64,
    )


@pytest.fixture(scope="module")
def adjoint(features) -> Adjoint:
    return Adjoint(features, ridge=1e-13)
