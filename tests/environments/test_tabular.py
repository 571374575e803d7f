"""Finite MDPs: draws follow the table, missing probability ends the task."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import Tabular, grid_world, random_mdp

NUM_DRAWS = 20_000


def small(**changes):
    """Two states, two actions; action 1 in state 0 ends the task in half the cases."""
    fields = dict(
        transitions=np.array([[[0.2, 0.8], [0.1, 0.4]], [[1.0, 0.0], [0.3, 0.7]]]),
        rewards=np.array([[1.0, 2.0], [3.0, 4.0]]),
        initial=np.array([0.25, 0.75]),
    )
    return Tabular(**fields | changes)


def next_states(state, action):
    """Draws of the next state, 2 for the end of the task."""

    @jax.jit
    def draw(keys):
        number = lambda n: jnp.asarray(n, jnp.int32)
        advance = lambda key: small().advance(number(state), number(action), key=key)
        states, terminated = jax.vmap(advance)(keys)
        return jnp.where(terminated, 2, states)

    return np.asarray(draw(jr.split(jr.key(0), NUM_DRAWS)))


def assert_frequencies(drawn, probabilities):
    """Within five standard errors; what is impossible never happens."""
    p = np.asarray(probabilities)
    frequencies = np.bincount(drawn, minlength=len(p)) / len(drawn)
    assert (np.abs(frequencies - p) <= 5 * np.sqrt(p * (1 - p) / len(drawn))).all()


@pytest.mark.parametrize(
    "state, action, probabilities",
    [(0, 0, [0.2, 0.8, 0.0]), (0, 1, [0.1, 0.4, 0.5]), (1, 0, [1.0, 0.0, 0.0])],
)
def test_next_states_follow_the_table(state, action, probabilities):
    assert_frequencies(next_states(state, action), probabilities)


def test_first_states_follow_the_initial_distribution():
    reset = jax.jit(jax.vmap(lambda key: small().reset(key=key)))
    drawn = np.asarray(reset(jr.split(jr.key(1), NUM_DRAWS)))
    assert_frequencies(drawn, [0.25, 0.75])


def test_a_state_is_seen_as_one_hot():
    assert small().observe(jnp.asarray(1, jnp.int32)).tolist() == [0.0, 1.0]


def test_the_reward_is_the_entry_of_the_table():
    reward = small().reward(jnp.array([0.0, 1.0], jnp.float32), jnp.int32(0))
    assert float(reward) == 3.0


@pytest.mark.parametrize("stop", [0.0, 0.25])
def test_random_mdps_stop_with_the_chance_asked_for(stop):
    mdp = random_mdp(5, 3, key=jr.key(0), stop=stop)
    np.testing.assert_allclose(mdp.transitions.sum(axis=-1), 1 - stop, rtol=1e-5)


def test_grid_world_moves_up_right_down_left():
    """From the middle of a grid without slipping."""
    mdp = grid_world(3, 3, slip=0.0)
    assert jnp.argmax(mdp.transitions[4], axis=-1).tolist() == [1, 5, 7, 3]


def test_walls_stop():
    """From the top left, up and left lead nowhere."""
    mdp = grid_world(3, 3, slip=0.0)
    assert jnp.argmax(mdp.transitions[0], axis=-1).tolist() == [0, 1, 3, 0]


def test_slipping_goes_anywhere():
    row = grid_world(3, 3, slip=0.4).transitions[4, 0]
    np.testing.assert_allclose(row[jnp.array([1, 5, 7, 3])], [0.7, 0.1, 0.1, 0.1])


def test_the_goal_ends_the_task_and_pays():
    mdp = grid_world(3, 3)
    assert float(mdp.transitions[8].sum()) == 0.0
    assert set(mdp.rewards[8].tolist()) == {1.0}


@pytest.mark.parametrize(
    "changes",
    [
        dict(transitions=np.full((2, 2, 2), 0.6)),
        dict(transitions=np.array([[[1.5, -0.5]] * 2] * 2)),
        dict(initial=np.array([0.5, 0.4])),
        dict(initial=np.array([np.nan, 1.0])),
    ],
    ids=["more than 1", "negative", "less than 1 at the start", "NaN"],
)
def test_what_is_no_probability_is_refused(changes):
    with pytest.raises(ValueError, match="must hold probabilities"):
        small(**changes)


def test_tables_can_be_made_inside_jit():
    """Exact solutions differentiate through them; their numbers are not known then."""
    rewards = jnp.zeros((2, 2), jnp.float32)
    remake = lambda rewards: small(rewards=rewards).rewards
    assert jax.jit(remake)(rewards).shape == (2, 2)
