"""EPIC against its definition, written out for a finite MDP."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import grid_world
from hyperirl.evaluation import Coverage, coverage, epic_distance
from hyperirl.evaluation.distance import canonical
from hyperirl.policies import softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import TableReward
from hyperirl.rollout import rollout

PROBLEM = problem(1.0, 0.9)
STATES, ACTIONS = 5, 3


@pytest.fixture(scope="module")
def everything():
    """Every transition of a finite MDP, once."""
    s, a, t = (x.ravel() for x in np.indices((STATES, ACTIONS, STATES)))
    eye = np.eye(STATES, dtype=np.float32)
    return Coverage(
        jnp.asarray(eye[s]),
        jnp.asarray(a, jnp.int32),
        jnp.asarray(eye[t]),
        jnp.arange(ACTIONS, dtype=jnp.int32),
    )


def tables(seed):
    draws = np.random.default_rng(seed).normal(size=(2, STATES, ACTIONS))
    return draws.astype(np.float32)


def reward(table):
    return TableReward(jnp.asarray(table, jnp.float32))


def epic(first, second, where):
    return float(epic_distance(reward(first), reward(second), where, PROBLEM))


def by_definition(first, second):
    """`C(r)(s, a, s')` for uniform `S` and `A`, and the Pearson distance."""
    forms = []
    for r in (first.astype(np.float64), second.astype(np.float64)):
        mean = r.mean(axis=1)
        form = r[:, :, None] + 0.9 * mean[None, None, :] - mean[:, None, None]
        forms.append((form - 0.9 * mean.mean()).ravel())
    correlation = np.corrcoef(*forms)[0, 1]
    return np.sqrt((1 - correlation) / 2)


def test_the_distance_is_that_of_the_definition(everything):
    first, second = tables(0)
    # float32 rewards, and a discount of float32.
    assert np.isclose(epic(first, second, everything), by_definition(first, second))


def test_scale_and_offset_do_not_matter(everything):
    first, second = tables(1)
    assert epic(first, 3 * first + 7, everything) < 1e-6
    plain = epic(first, second, everything)
    assert np.isclose(epic(0.1 * first - 4, second, everything), plain, atol=1e-5)


def test_the_opposite_reward_is_at_distance_one_and_order_does_not_matter(everything):
    first, second = tables(2)
    assert np.isclose(epic(first, -first, everything), 1)
    forward, backward = (
        epic(*pair, everything) for pair in ((first, second), (second, first))
    )
    assert np.isclose(forward, backward) and 0 < forward < 1


def test_a_potential_of_the_state_costs_only_what_the_next_state_would_pay_back(
    everything,
):
    """`-Phi(s)` alone becomes `-gamma (Phi(s') - E Phi)`: shaping without its half."""
    phi = tables(3)[0, :, :1].repeat(ACTIONS, axis=1)
    form = canonical(reward(-phi), everything, PROBLEM.discount)
    after = np.asarray(everything.next_observations) @ phi[:, 0]
    assert np.allclose(form, -0.9 * (after - phi.mean()), atol=1e-6)


def test_a_constant_reward_has_no_distance(everything):
    first, _ = tables(4)
    assert np.isnan(epic(first, np.ones((STATES, ACTIONS)), everything))


def test_coverage_is_made_of_steps_that_were_taken():
    world = grid_world(3, 3, horizon=20)
    policy = softmax_table(jnp.zeros((9, 4), jnp.float32))
    episodes = rollout(world, policy, 12, key=jr.key(0))
    assert not episodes.mask.all()
    seen = jnp.pad(episodes.mask, [(0, 0), (1, 0)], constant_values=True)
    spoiled = jnp.where(seen[:, :, None], episodes.observations, jnp.nan)
    episodes = eqx.tree_at(lambda e: e.observations, episodes, spoiled)
    where = coverage(episodes, world.action_space, num_samples=50)
    assert where.observations.shape == where.next_observations.shape == (50, 9)
    assert jnp.isfinite(where.observations).all()
    assert jnp.isfinite(where.next_observations).all()
    everything = coverage(episodes, world.action_space, num_samples=10_000)
    assert everything.actions.shape == (int(episodes.mask.sum()),)
