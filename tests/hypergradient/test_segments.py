"""Segmented demonstrations: the loss and its hypergradient are the sums they should be.

Nothing is sampled: see `conftest`.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.demos import Demos
from hyperirl.demos.segments import agents_of, segmented, usual_segment
from hyperirl.hypergradient import Fisher, outer_loss
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward
from hyperirl.trajectories import Trajectories

LENGTH = 2


@pytest.fixture(scope="module")
def whole(expert) -> Demos:
    """Three episodes of three steps and one of a single step; some terminated."""
    mask = np.arange(3) < np.array([3, 3, 3, 1])[:, None]
    some = eqx.tree_at(
        lambda t: (t.mask, t.terminated),
        expert[np.arange(4)],
        (jnp.asarray(mask), jnp.asarray([True, False, False, True])),
    )
    return Demos(some)


def in_segments(demos: Demos) -> Trajectories:
    """In the precision of the oracle; one-hot states lose nothing on the way."""
    cut = segmented(demos, LENGTH).trajectories
    exactly = cut.observations.astype(jnp.float64)
    return eqx.tree_at(lambda t: t.observations, cut, exactly)


def visits(demos: Demos, discount: float) -> Array:
    """By hand: every segment counts from its own start; there are seven."""
    table, t = np.zeros((2, 2)), demos.trajectories
    for episode, length in enumerate([3, 3, 3, 1]):
        for step in range(length):
            state = int(np.argmax(t.observations[episode, step]))
            action = int(t.actions[episode, step])
            table[state, action] += discount ** (step % LENGTH) / 7
    return jnp.asarray(table)


def test_segments_hold_the_same_steps_and_only_the_last_one_ends(whole):
    cut = in_segments(whole)
    assert cut.lengths.tolist() == [2, 1, 2, 1, 2, 1, 1]
    assert cut.terminated.tolist() == [False, True, *[False] * 4, True]
    t = whole.trajectories
    np.testing.assert_array_equal(cut.observations[1, :2], t.observations[0, 2:4])
    np.testing.assert_array_equal(cut.actions[cut.mask], t.actions[t.mask])


def test_the_loss_of_segments_is_their_sum(whole, problem):
    """Fails if a segment is discounted from the start of its episode."""
    logits = jnp.array([[0.3, -0.2], [1.0, 0.4]])
    cut = in_segments(whole)
    expected = exact.tabular.outer_loss(logits, visits(whole, 0.8))
    np.testing.assert_allclose(
        outer_loss(softmax_table(logits), cut, problem), expected, rtol=1e-12
    )


def test_agents_start_as_the_segments_do(mdp, whole):
    """Three of seven segments begin in the middle of an episode."""
    world = agents_of(mdp, whole, LENGTH)
    middle = np.asarray(whole.trajectories.observations[:3, 2])
    np.testing.assert_array_equal(world.observations, middle)
    assert float(world.chance) == pytest.approx(3 / 7)
    assert world.horizon == LENGTH
    assert agents_of(mdp, whole, 3) is mdp  # Nothing is cut.


def test_the_hypergradient_of_segments_is_that_of_their_loss(
    mdp, whole, problem, adjoint, cut_agents
):
    """By autodiff through soft value iteration; agents are cut like the segments.

    Fails if a cut agent is taken for one whose task is over.
    """
    reward = TableReward(jnp.full((2, 2), -jnp.log(2.0) * problem.temperature))
    weights = visits(whole, 0.8)
    expected = exact.tabular.hypergradient(mdp, reward.table, problem, weights)
    expert = in_segments(whole)
    estimator = eqx.filter_jit(Fisher(Explicit(damping=1e-10), adjoint, expected=True))
    policy = softmax_table(jnp.zeros((2, 2)))
    found = estimator(policy, reward, expert, cut_agents, problem).h.table
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("horizon", "discount", "length"),
    [(1000, 0.99, 200), (399, 0.99, 0), (500, 0.9, 20), (200, 0.99, 0)],
)
def test_only_long_episodes_are_cut(horizon, discount, length):
    assert usual_segment(horizon, discount) == length
