"""Numbers to draw: the reward at the places the axes name."""

import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import tasks
from hyperirl.environments import CartPole, grid_world
from hyperirl.evaluation import (
    RankingSet,
    along,
    reward_map,
    scatter,
    sensitivity,
    visits,
)
from hyperirl.evaluation.ranking import RandomPolicy
from hyperirl.rewards import LinearReward, QuadraticReward, TableReward, rewards_of
from hyperirl.spaces import Discrete
from hyperirl.trajectories import Trajectories


def ranking_of(environment):
    """Three made-up episodes of four steps, standing in for a ranking set."""
    rng = np.random.default_rng(0)
    size, space = environment.observation_size, environment.action_space
    if isinstance(space, Discrete):
        actions = rng.integers(0, space.num_actions, (3, 4)).astype(np.int32)
    else:
        actions = rng.normal(size=(3, 4, space.size)).astype(np.float32)
    observations = rng.normal(size=(3, 5, size)).astype(np.float32)
    episodes = Trajectories(
        jnp.asarray(observations),
        jnp.asarray(actions),
        jnp.ones((3, 4), bool),
        jnp.zeros(3, bool),
    )
    rewards = rewards_of(environment.reward, episodes)
    episodes = eqx.tree_at(
        lambda e: e.rewards, episodes, rewards, is_leaf=lambda leaf: leaf is None
    )
    noise = jnp.array([0, 0.5, 1], jnp.float32)
    return RankingSet(episodes, noise, RandomPolicy(space))


def test_cartpole_is_drawn_over_angle_and_angular_velocity_for_each_action():
    task = tasks.make("cartpole", horizon=20)
    environment = task.environment
    value = lambda o, a: jnp.stack([10 * o[2], o[3], a.astype(jnp.float32), o[0]])
    reward = LinearReward(jnp.ones(4, jnp.float32), value)
    episodes = ranking_of(environment).trajectories
    drawn = reward_map(task, reward, episodes, episodes)
    titles = [panel["title"] for panel in drawn["panels"]]
    assert drawn["kind"] == "heatmaps"
    assert titles == [
        "learned, push left",
        "true, push left",
        "learned, push right",
        "true, push right",
    ]
    x, y = np.array(drawn["x"]["values"]), np.array(drawn["y"]["values"])
    expected = 10 * x[None, :] + y[:, None] + 1
    assert np.allclose(drawn["panels"][2]["values"], expected, atol=1e-3)
    assert np.all(np.array(drawn["panels"][3]["values"]) == 1)
    json.dumps(drawn, allow_nan=False)


def test_the_pendulum_is_drawn_without_torque():
    task = tasks.make("pendulum", horizon=5)
    environment = task.environment
    reward = LinearReward(
        jnp.ones(1, jnp.float32), lambda o, a: o[:1] + 100 * a
    )  # The cosine.
    episodes = ranking_of(environment).trajectories
    drawn = reward_map(task, reward, episodes, episodes)
    learned, true = (np.array(panel["values"]) for panel in drawn["panels"])
    angle, speed = (np.array(drawn[axis]["values"]) for axis in "xy")
    assert np.allclose(learned, np.cos(angle)[None, :], atol=1e-4)
    expected = -(angle[None, :] ** 2) - 0.1 * speed[:, None] ** 2
    assert np.allclose(true, expected, rtol=1e-3, atol=1e-3)


def test_quadratic_rewards_are_drawn_as_their_costs():
    task = tasks.make("lqr", horizon=5)
    lqr = task.environment
    reward = QuadraticReward.from_costs(2 * lqr.Q, 3 * lqr.R)
    episodes = ranking_of(lqr).trajectories
    drawn = reward_map(task, reward, episodes, episodes)
    learned_q, true_q, learned_r, true_r = drawn["panels"]
    assert np.allclose(learned_q["values"], 2 * np.array(true_q["values"]), rtol=1e-4)
    assert np.allclose(learned_r["values"], 3 * np.array(true_r["values"]), rtol=1e-4)
    assert learned_r["rows"] == learned_r["columns"] == ["a0", "a1"]


def test_finite_mdps_are_drawn_as_tables_and_every_episode_is_in_the_scatter():
    world = grid_world(2, 2, horizon=5)
    ranking, reward = ranking_of(world), TableReward(2 * world.rewards)
    shown = ranking.trajectories[:2]
    drawn = reward_map(tasks.Task(world), reward, ranking.trajectories, shown)
    learned, true = (np.array(panel["values"]) for panel in drawn["panels"])
    assert np.allclose(learned, 2 * true) and true.shape == (4, 4)
    points = scatter(reward, ranking.trajectories, ranking.noise)
    assert np.allclose(points["y"], 2 * np.array(points["x"]), atol=1e-3)
    assert points["groups"] == ["0% random", "50% random", "100% random"]
    assert points["x"] == pytest.approx(
        np.asarray(ranking.trajectories.rewards.sum(axis=1)).tolist(), rel=1e-3
    )


def test_pairs_that_were_never_demonstrated_are_told():
    world = grid_world(2, 2, horizon=5)
    ranking = ranking_of(world)
    one_hot = jnp.eye(4, dtype=jnp.float32)[jnp.array([[0, 1, 1, 3, 2]] * 3)]
    actions = jnp.array([[2, 0, 0, 1]] * 3, jnp.int32)
    episodes = eqx.tree_at(
        lambda e: (e.observations, e.actions), ranking.trajectories, (one_hot, actions)
    )
    reward = TableReward(2 * world.rewards)
    drawn = reward_map(tasks.Task(world), reward, episodes, episodes)
    for panel in drawn["panels"]:
        assert panel["seen"] == ["0010", "1000", "0000", "0100"]


class Unpaid(CartPole):
    @property
    def has_reward(self):
        return False


def test_any_task_is_drawn_over_the_inputs_that_matter_most():
    """The others are where they usually are, and there is no true reward."""
    value = lambda o, a: jnp.stack([o[0], 10 * o[1], o[2], 5 * o[3]])
    reward = LinearReward(jnp.ones(4, jnp.float32), value)
    task = tasks.Task(Unpaid(horizon=20))
    episodes = ranking_of(CartPole(horizon=20)).trajectories
    order = sensitivity(task, reward, episodes)["order"]
    assert order[:2] == [1, 3]
    drawn = reward_map(task, reward, episodes, episodes, order)
    assert (drawn["x"]["name"], drawn["y"]["name"]) == ("input 1", "input 3")
    titles = [panel["title"] for panel in drawn["panels"]]
    assert titles == ["learned, action 0", "learned, action 1"]
    x, y = np.array(drawn["x"]["values"]), np.array(drawn["y"]["values"])
    seen = np.asarray(episodes.observations)[:, :-1].reshape(-1, 4)
    others = np.median(seen, axis=0)[[0, 2]].sum()
    expected = others + 10 * x[None, :] + 5 * y[:, None]
    assert np.allclose(drawn["panels"][0]["values"], expected, atol=1e-3)


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_places_near_demonstrations_are_inside_and_no_others(name):
    task = tasks.make(name, horizon=20)
    episodes = ranking_of(task.environment).trajectories
    reward = LinearReward(jnp.ones(1, jnp.float32), lambda o, a: o[:1])
    drawn = reward_map(task, reward, episodes, episodes[:1])
    x, y = (np.array(drawn[axis]["values"]) for axis in "xy")
    inside = np.array([[cell == "1" for cell in row] for row in drawn["inside"]])
    seen = np.stack([drawn["seen"][axis] for axis in "xy"], axis=1)
    assert 1 <= len(seen) <= 4
    if name == "pendulum":  # Its angle is not a number that it observes.
        first = np.asarray(episodes.observations)[0, 0]
        assert np.any(np.isclose(seen[:, 0], np.arctan2(first[1], first[0]), atol=1e-3))
    cell = np.array([x[1] - x[0], y[1] - y[0]])
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    away = np.abs(grid[:, :, None] - seen[None, None]) / cell
    # A cell around the one that a place is in, which is half a cell away at most.
    assert np.all(inside[(away < 0.999).all(-1).any(-1)])
    assert not np.any(inside[(away > 1.501).any(-1).all(-1)])


def test_inputs_matter_by_their_slope_and_their_spread():
    """Twice the slope is as good as twice the spread; a choice by what it changes."""
    task = tasks.make("cartpole", horizon=20)
    episodes = ranking_of(task.environment).trajectories
    weights = np.array([0.3, -2.0, 0.0, 0.7, 5.0])
    value = lambda o, a: jnp.append(o, a.astype(jnp.float32))
    reward = LinearReward(jnp.asarray(weights, jnp.float32), value)
    found = sensitivity(task, reward, episodes)
    spread = np.asarray(episodes.observations, np.float64)[:, :-1].reshape(-1, 4).std(0)
    expected = dict(
        zip([*task.input_names, "action"], abs(weights) * [*spread, 0.5], strict=True)
    )
    assert found["names"] == sorted(expected, key=lambda name: -expected[name])
    assert found["learned"] == pytest.approx(
        [expected[name] for name in found["names"]], rel=1e-4
    )
    assert found["true"] == [0] * 5  # Every step pays 1.


def test_actions_that_are_vectors_matter_number_by_number():
    task = tasks.make("lqr", horizon=5)
    lqr, episodes = task.environment, ranking_of(task.environment).trajectories
    reward = QuadraticReward.from_costs(lqr.Q, lqr.R)
    found = sensitivity(task, reward, episodes)
    seen = np.asarray(episodes.observations, np.float64)[:, :-1]
    expected = {}
    for kind, cost, values in (
        ("input", lqr.Q, seen),
        ("action", lqr.R, np.asarray(episodes.actions, np.float64)),
    ):
        values = values.reshape(-1, values.shape[-1])
        slopes = np.abs(-2 * values @ np.asarray(cost, np.float64)).mean(axis=0)
        for i, matters in enumerate(slopes * values.std(axis=0)):
            expected[f"{kind} {i}"] = matters
    assert dict(zip(found["names"], found["learned"], strict=True)) == pytest.approx(
        expected, rel=1e-3
    )
    assert found["true"] == pytest.approx(found["learned"], rel=1e-3)


def test_a_table_needs_no_sensitivity():
    world = grid_world(2, 2, horizon=5)
    episodes = ranking_of(world).trajectories
    assert sensitivity(tasks.Task(world), TableReward(world.rewards), episodes) == {}


def test_the_reward_along_an_episode_stands_beside_the_true_one():
    lqr = tasks.make("lqr", horizon=5).environment
    episodes = ranking_of(lqr).trajectories
    mask = episodes.mask.at[1, 2:].set(False)
    episodes = eqx.tree_at(lambda e: e.mask, episodes, mask)
    reward = QuadraticReward.from_costs(2 * lqr.Q, 2 * lqr.R)
    found = along(lqr, reward, episodes, episodes[1])
    true = np.asarray(episodes.rewards)[1, :2]
    np.testing.assert_allclose(found["true"], true, rtol=1e-3)
    np.testing.assert_allclose(found["learned"], 2 * true, rtol=1e-3)
    assert found["correlation"] == pytest.approx(1, abs=1e-4)


def test_a_constant_true_reward_has_no_correlation_and_an_unknown_one_no_line():
    reward = LinearReward(jnp.ones(1, jnp.float32), lambda o, a: o[:1])
    episodes = ranking_of(CartPole(horizon=20)).trajectories
    found = along(CartPole(horizon=20), reward, episodes, episodes[0])
    assert found["correlation"] is None and found["true"] == [1] * 4
    assert set(along(Unpaid(horizon=20), reward, episodes, episodes[0])) == {"learned"}


def test_visits_overlap_as_far_as_they_are_the_same():
    task = tasks.make("cartpole", horizon=20)
    episodes = ranking_of(task.environment).trajectories
    alike = visits(task, episodes, episodes, order=[2, 0])["inputs"]
    names = [task.input_names[i] for i in (2, 0, 1, 3)]
    assert [found["name"] for found in alike] == names
    for found in alike:
        assert found["overlap"] == pytest.approx(1, abs=1e-3)
        assert sum(found["expert"]) == pytest.approx(1, abs=1e-3)
    moved = jnp.array([100, 0, 0, 0], jnp.float32)
    away = eqx.tree_at(
        lambda e: e.observations, episodes, episodes.observations + moved[None, None]
    )
    first, second = visits(task, episodes, away)["inputs"][:2]
    assert first["overlap"] == 0 and second["overlap"] == pytest.approx(1, abs=1e-3)


def test_an_input_that_never_changes_is_not_shown():
    task = tasks.make("cartpole", horizon=20)
    episodes = ranking_of(task.environment).trajectories
    still = eqx.tree_at(
        lambda e: e.observations, episodes, episodes.observations.at[..., 1].set(3.0)
    )
    assert len(visits(task, still, still)["inputs"]) == 3
