"""Episodes that start in other states than the usual ones."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import OtherStarts
from hyperirl.tasks import make

NAMES = ("cartpole", "lqr", "pendulum", "tabular")


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_found_from_what_it_looks_like(name):
    environment = make(name).environment
    state = environment.reset(key=jr.key(0))
    seen = environment.observe(state)
    again = environment.observe(environment.state_of(seen))
    np.testing.assert_allclose(again, seen, atol=1e-6)


@pytest.fixture
def starts():
    task = make("cartpole").environment
    positions = jnp.array([[1.0], [2.0], [9.0]], jnp.float32)  # The last is padding.
    return lambda chance: OtherStarts(
        task=task,
        observations=positions * jnp.eye(1, 4, dtype=jnp.float32),
        count=jnp.int32(2),
        chance=jnp.asarray(chance, jnp.float32),
        horizon=128,
    )


def test_first_states_are_demonstrated_as_often_as_asked_for(starts):
    keys = jr.split(jr.key(0), 400)
    positions = jax.vmap(lambda key: starts(0.7).reset(key=key))(keys)[:, 0]
    share = np.mean(np.asarray(positions) >= 1)
    assert abs(share - 0.7) < 3 * (0.7 * 0.3 / 400) ** 0.5
    assert {0.0, 1.0, 2.0} == set(np.round(np.asarray(positions)))


def test_without_them_the_task_is_entered_as_usual(starts):
    state = starts(0.0).reset(key=jr.key(1))
    assert np.all(np.abs(state) <= 0.05)


def test_steps_are_those_of_the_task(starts):
    environment, state = starts(0.5), jnp.array([0.1, 0.2, 0.01, 0.3], jnp.float32)
    ours = environment.step(state, jnp.int32(1), key=jr.key(0))
    theirs = environment.task.step(state, jnp.int32(1), key=jr.key(0))
    np.testing.assert_array_equal(ours.state, theirs.state)
    assert ours.reward == theirs.reward and ours.terminated == theirs.terminated
