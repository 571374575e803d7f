"""Numbers to draw: the reward at the places the axes name."""

import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import tasks
from hyperirl.environments import CartPole, grid_world
from hyperirl.evaluation import RankingSet, picture, scatter
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
    drawn = picture(task, reward, ranking_of(environment).trajectories)
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
    drawn = picture(task, reward, ranking_of(environment).trajectories)
    learned, true = (np.array(panel["values"]) for panel in drawn["panels"])
    angle, speed = (np.array(drawn[axis]["values"]) for axis in "xy")
    assert np.allclose(learned, np.cos(angle)[None, :], atol=1e-4)
    expected = -(angle[None, :] ** 2) - 0.1 * speed[:, None] ** 2
    assert np.allclose(true, expected, rtol=1e-3, atol=1e-3)


def test_quadratic_rewards_are_drawn_as_their_costs():
    task = tasks.make("lqr", horizon=5)
    lqr = task.environment
    reward = QuadraticReward.from_costs(2 * lqr.Q, 3 * lqr.R)
    drawn = picture(task, reward, ranking_of(lqr).trajectories)
    learned_q, true_q, learned_r, true_r = drawn["panels"]
    assert np.allclose(learned_q["values"], 2 * np.array(true_q["values"]), rtol=1e-4)
    assert np.allclose(learned_r["values"], 3 * np.array(true_r["values"]), rtol=1e-4)
    assert learned_r["rows"] == learned_r["columns"] == ["a0", "a1"]


def test_finite_mdps_are_drawn_as_tables_and_every_episode_is_in_the_scatter():
    world = grid_world(2, 2, horizon=5)
    ranking, reward = ranking_of(world), TableReward(2 * world.rewards)
    drawn = picture(tasks.Task(world), reward, ranking.trajectories)
    learned, true = (np.array(panel["values"]) for panel in drawn["panels"])
    assert np.allclose(learned, 2 * true) and true.shape == (4, 4)
    points = scatter(reward, ranking.trajectories, ranking.noise)
    assert np.allclose(points["y"], 2 * np.array(points["x"]), atol=1e-3)
    assert points["groups"] == ["0% random", "50% random", "100% random"]
    assert points["x"] == pytest.approx(
        np.asarray(ranking.trajectories.rewards.sum(axis=1)).tolist(), rel=1e-3
    )


def test_any_task_is_drawn_over_its_first_two_numbers_without_a_true_reward():
    """Fails if a task without axes or without a true reward cannot be drawn."""

    class Unpaid(CartPole):
        @property
        def has_reward(self):
            return False

    value = lambda o, a: jnp.stack([o[0], 10 * o[1], o[2], o[3]])
    reward = LinearReward(jnp.ones(4, jnp.float32), value)
    episodes = ranking_of(CartPole(horizon=20)).trajectories
    drawn = picture(tasks.Task(Unpaid(horizon=20)), reward, episodes)
    assert [p["title"] for p in drawn["panels"]] == [
        "learned, action 0",
        "learned, action 1",
    ]
    x, y = np.array(drawn["x"]["values"]), np.array(drawn["y"]["values"])
    expected = x[None, :] + 10 * y[:, None]
    assert np.allclose(drawn["panels"][0]["values"], expected, atol=1e-3)
