"""Small problems with different temperatures and discounts, and how to compare."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from hyperirl.environments import LQR, Tabular, random_lqr
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward

PROBLEMS = [(0.3, 0.7), (0.7, 0.85), (1.5, 0.95)]


class Finite(eqx.Module):
    """An MDP, whose own reward the expert follows, and a reward under study."""

    mdp: Tabular
    reward: Float[Array, "states actions"]
    logits: Float[Array, "states actions"]  # Of a policy that is not optimal.
    problem: Problem


class Quadratic(eqx.Module):
    """A linear system, whose own reward the expert follows, and another reward."""

    lqr: LQR
    reward: QuadraticReward
    problem: Problem


@pytest.fixture(params=range(len(PROBLEMS)))
def seed(request) -> int:
    return request.param


@pytest.fixture
def problem(seed) -> Problem:
    temperature, discount = PROBLEMS[seed]
    return Problem(jnp.float64(temperature), jnp.float64(discount))


def make_mdp(rng, states: int, actions: int, stop: float) -> Tabular:
    """In `float64`; drawn by NumPy, which compiles nothing."""
    transitions = (1 - stop) * rng.dirichlet(np.ones(states), (states, actions))
    rewards = rng.normal(size=(states, actions))
    initial = rng.dirichlet(np.ones(states))
    arrays = map(jnp.asarray, (transitions, rewards, initial))
    return Tabular(*arrays)


def make_finite(seed, problem, states: int, actions: int, stop: float) -> Finite:
    rng = np.random.default_rng(seed)
    mdp = make_mdp(rng, states, actions, stop)
    draw = lambda: jnp.asarray(rng.normal(size=(states, actions)))
    return Finite(mdp, draw(), draw(), problem)


@pytest.fixture
def finite(seed, problem) -> Finite:
    """5 states, 3 actions; every action may end the task, but for the first seed."""
    return make_finite(seed, problem, 5, 3, stop=0.02 * seed)


@pytest.fixture
def tiny(seed, problem) -> Finite:
    """2 states and 2 actions: few enough to list every episode."""
    return make_finite(seed, problem, 2, 2, stop=0.1 * seed)


@pytest.fixture
def quadratic(seed, problem) -> Quadratic:
    """3 state and 2 action components; the system alone is slightly unstable."""
    rng = np.random.default_rng(seed)
    lqr = random_lqr(rng)
    near = lambda size: np.eye(size) + 0.3 * rng.normal(size=(size, size))
    reward = QuadraticReward(jnp.asarray(near(3)), jnp.asarray(0.7 * near(2)))
    return Quadratic(lqr, reward, problem)


@pytest.fixture
def close():
    """Asserts that two pytrees agree, relative to the largest expected number.

    `pytest -rP` shows the errors.
    """

    def check(actual, expected, tolerance: float) -> None:
        flat = lambda tree: np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])
        actual, expected = flat(actual), flat(expected)
        assert actual.dtype == expected.dtype == np.float64
        assert actual.shape == expected.shape
        error = np.max(np.abs(actual - expected)) / np.max(np.abs(expected))
        print(f"relative error {error:.1e}")
        assert error < tolerance, f"relative error {error:.2g}, allowed {tolerance:.2g}"

    return check
