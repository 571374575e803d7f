"""Episodes that start in states of other trajectories."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.demos import starting_in
from hyperirl.environments import CartPole
from hyperirl.trajectories import Trajectories


@pytest.fixture
def shown():
    """Two episodes, of one step and of three; where no action is taken it says 9."""
    positions = jnp.array([[1.0, 9, 9, 9], [2.0, 3, 4, 9]], jnp.float32)
    return Trajectories(
        observations=positions[:, :, None] * jnp.eye(1, 4, dtype=jnp.float32)[None],
        actions=jnp.zeros((2, 3), jnp.int32),
        mask=jnp.array([[True, False, False], [True, True, True]]),
        terminated=jnp.array([True, False]),
    )


def first_positions(environment, count=400):
    keys = jr.split(jr.key(0), count)
    return np.asarray(jax.vmap(lambda key: environment.reset(key=key))(keys)[:, 0])


def test_episodes_start_in_every_state_where_an_action_was_taken(shown):
    """Fails if padding or a last state counts as one."""
    positions = first_positions(starting_in(CartPole(), shown, 1.0))
    values, counts = np.unique(positions, return_counts=True)
    np.testing.assert_array_equal(values, [1, 2, 3, 4])
    assert np.all(np.abs(counts - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5)


def test_as_many_as_asked_for_start_there(shown):
    there = first_positions(starting_in(CartPole(), shown, 0.3)) >= 1
    assert abs(there.mean() - 0.3) < 4 * (0.3 * 0.7 / 400) ** 0.5


def test_episodes_are_cut_but_never_longer_than_the_task(shown):
    assert starting_in(CartPole(), shown, 0.5).horizon == 128
    assert starting_in(CartPole(horizon=50), shown, 0.5).horizon == 50
