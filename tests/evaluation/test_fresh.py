"""Learning curves: when they reach what, and what is refused."""

import importlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from hyperirl.environments import LQR, OtherStarts, Pendulum, grid_world
from hyperirl.evaluation import (
    Curve,
    FreshTraining,
    policies_like,
    retraining_ratios,
    steps_to_reach,
    usual_policy,
)
from hyperirl.inner import true_reward
from hyperirl.networks import Normalizer
from hyperirl.policies import linear_gaussian, mlp_policy, softmax_table
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.worlds import make_world

fresh = importlib.import_module("hyperirl.evaluation.fresh")


def uniform(environment, key):
    num_actions = environment.action_space.num_actions
    size = environment.observation_size
    return softmax_table(jnp.zeros((size, num_actions), jnp.float32))


def curve(*returns):
    steps = tuple(100 * i for i in range(len(returns)))
    return Curve(steps, tuple(float(r) for r in returns), (0.0,) * len(returns))


def test_steps_are_interpolated_between_measurements():
    assert steps_to_reach(curve(0, 10, 30, 50), 20.0) == 150
    assert steps_to_reach(curve(0, 10, 30, 50), 50.0) == 300
    assert steps_to_reach(curve(0, 30, 10, 50), 20.0) == pytest.approx(200 / 3)
    assert steps_to_reach(curve(25, 10), 20.0) == 0
    assert steps_to_reach(curve(0, 10, 19), 20.0) is None


def test_the_ratio_is_that_of_each_pair_of_seeds():
    learned, true = [curve(0, 10, 20), curve(0, 20)], [curve(0, 20), curve(0, 20)]
    assert retraining_ratios(learned, true, 20.0) == [2.0, 1.0]
    assert retraining_ratios(learned, [curve(0, 5), curve(0, 20)], 20.0) is None
    assert retraining_ratios([curve(0, 5), curve(0, 20)], true, 20.0) is None


def test_a_budget_below_one_update_is_refused():
    with pytest.raises(ValueError, match="less than the 8192 of one update"):
        FreshTraining(budget=1000).fitting(LQR())
    with pytest.raises(ValueError, match="less than the 128 of one update"):
        FreshTraining(budget=100, num_envs=1)
    with pytest.raises(ValueError, match="falls from"):
        FreshTraining(first_rate=1e-5, last_rate=1e-3)
    with pytest.raises(ValueError, match="at least once"):
        FreshTraining(num_checks=0)
    with pytest.raises(ValueError, match="share of the episodes"):
        FreshTraining(demo_starts=1.2)


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_training_starts_in_demonstrated_states_and_measuring_does_not(
    share, monkeypatch
):
    """A solver that learns nothing, and remembers where it was asked to."""
    asked = []

    class Solver:
        def init(self, environment, policy, *, key):
            asked.append(environment)
            return SimpleNamespace(policy=policy)

        def improve(self, environment, reward, state, problem, num_updates, *, key):
            asked.append(environment)
            return state

    monkeypatch.setattr(fresh, "_solver", lambda *_: Solver())
    task = grid_world()
    shown = rollout(task, uniform(task, None), 3, key=jr.key(0))
    training = FreshTraining(budget=8192, num_checks=1, demo_starts=share)
    found = fresh.train_fresh(
        task,
        true_reward(task),
        problem(),
        shown,
        key=jr.key(0),
        starts=shown,
        training=training,
        policy_for=uniform,
    )
    assert len(asked) == 2
    for environment in asked:
        assert isinstance(environment, OtherStarts) is (share > 0)
        if share > 0:
            assert environment.chance == jnp.float32(share)
            assert environment.task is task
    assert found.nll.shape == (3,)


def test_the_rate_falls_from_the_first_to_the_last_through_all_parts():
    task = Pendulum()
    training = FreshTraining(first_rate=1e-3, last_rate=1e-5).fitting(task)
    parts = [fresh._solver(task, training, *ends) for ends in ((0.0, 0.5), (0.5, 1.0))]
    starts = [float(part.learning_rate) for part in parts]
    ends = [float(part.learning_rate * part.final_rate) for part in parts]
    assert starts == pytest.approx([1e-3, 5.05e-4], rel=1e-5)
    assert ends == pytest.approx([5.05e-4, 1e-5], rel=1e-5)


def test_the_size_of_an_update_is_known_once_the_world_is():
    with pytest.raises(ValueError, match="depends on the world"):
        FreshTraining().steps_per_update  # noqa: B018
    assert FreshTraining().fitting(Pendulum()).steps_per_update == 64 * 128


def test_every_episode_that_a_policy_is_judged_by_is_another():
    task, gain = LQR(), jnp.zeros((2, 4), jnp.float32)
    policy = linear_gaussian(gain, jnp.eye(2, dtype=jnp.float32))
    shown = rollout(task, policy, 2, key=jr.key(0))
    training = FreshTraining(check_episodes=3, final_checks=2)
    returned, _ = fresh.measure(task, policy, shown, key=jr.key(1), training=training)
    assert len(set(returned.tolist())) == 6


def test_the_usual_policy_stays_within_bounds_where_there_are_any():
    bounded = usual_policy(Pendulum(), jr.key(0)).head
    assert bounded.bounds == (-2.0, 2.0) and bounded.covariance == "state"
    unbounded = usual_policy(LQR(), jr.key(0)).head
    assert unbounded.bounds is None and unbounded.covariance == "full"


def test_robots_get_more_updates_for_their_steps():
    """With large batches and few gradients they learn to hop more slowly."""
    robot, given = make_world("gym:InvertedPendulum-v5"), FreshTraining(budget=81_920)
    assert given.fitting(Pendulum()).num_updates == 10
    fitted = given.fitting(robot)
    assert fitted.num_updates == 40
    assert fresh._solver(robot, fitted, 0.0, 1.0).num_minibatches == 32
    assert FreshTraining(num_envs=8).fitting(robot).num_envs == 8


def test_fresh_policies_are_of_the_class_of_the_trained_one():
    normalizer = Normalizer(jnp.ones(3, jnp.float32), jnp.ones(3, jnp.float32))
    environment = Pendulum()
    trained = mlp_policy(
        3,
        environment.action_space,
        key=jr.key(0),
        hidden=(8, 4),
        covariance="state",
        squash=True,
        normalizer=normalizer,
    )
    fresh = policies_like(trained)(environment, jr.key(1))
    assert jax.tree.structure(fresh) == jax.tree.structure(trained)
    assert fresh.head == trained.head
    assert not jnp.allclose(
        fresh.network.layers[0].weight, trained.network.layers[0].weight
    )
    gain, root = jnp.zeros((2, 4), jnp.float32), jnp.eye(2, dtype=jnp.float32)
    linear = policies_like(linear_gaussian(gain, root))(LQR(), jr.key(1))
    assert len(linear.network.layers) == 1 and linear.free.shape == (3,)


@pytest.mark.slow
def test_a_fresh_policy_does_not_run_away_on_lqr():
    """With long traces this very training ends at a return of -10,000 and falling."""
    environment = LQR()
    trained = fresh.train_fresh(
        environment,
        true_reward(environment),
        problem(),
        rollout(environment, usual_policy(environment, jr.key(0)), 4, key=jr.key(1)),
        key=jr.key(1001),
        training=FreshTraining(budget=200_000, num_checks=2),
    )
    assert trained.curve.env_return[-1] > -200 > trained.curve.env_return[0]
