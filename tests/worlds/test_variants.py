"""Robots with other dynamics, to see whether a reward carries over."""

import numpy as np
import pytest

import hyperirl as hi
from hyperirl.worlds import make_world, variants_of
from hyperirl.worlds.variants import changes

pytest.importorskip("mujoco")

CHANGES = changes(1)


def after(name: str, change=None, action=0.0, steps=10) -> np.ndarray:
    """What is seen after some steps of the same action, from a tilted start."""
    stepper = make_world(name, change=change).engine.sample
    stepper.restart(np.array([0]), rng=np.random.default_rng(0))
    stepper.start_at(np.array([0]), np.array([[0.0, 0.05, 0.0, 0.0]]))
    for _ in range(steps):
        stepper.step(np.full((1, 1), action, np.float32))
    return stepper.observe()[0]


def test_a_pole_falls_faster_under_stronger_gravity():
    usual, strong = (
        after("InvertedPendulum-v5", change)
        for change in (None, CHANGES["gravity x1.5"])
    )
    assert strong[3] > 1.2 * usual[3] > 0


def test_the_same_push_moves_what_is_heavier_or_has_a_weak_motor_less():
    push = lambda change: after("InvertedPendulum-v5", change, action=1.0)[2]
    usual = push(None)
    assert 0 < push(CHANGES["mass x1.5"]) < 0.9 * usual
    assert 0 < push(CHANGES["last motor x0.5"]) < 0.7 * usual


def test_a_disabled_joint_is_moved_by_no_action():
    """Hopper's foot, in the air: what is asked of its motor makes no difference."""
    change = changes(3)["last joint disabled"]

    def angles(change, foot: float) -> np.ndarray:
        stepper = make_world("Hopper-v5", change=change).engine.sample
        stepper.restart(np.array([0]), rng=np.random.default_rng(0))
        for _ in range(3):
            stepper.step(np.array([[0.3, 0.0, foot]], np.float32))
        return stepper.observe()[0]

    np.testing.assert_array_equal(angles(change, 1.0), angles(change, -1.0))
    assert np.abs(angles(None, 1.0) - angles(None, -1.0)).max() > 0.1
    assert np.abs(angles(change, 1.0) - angles(None, 0.0)).max() < 1e-9


def test_what_is_heavier_is_harder_to_turn():
    bodies = [
        make_world("InvertedPendulum-v5", change=change).engine.sample.model
        for change in (None, CHANGES["mass x1.5"])
    ]
    usual, heavy = (model.body_inertia for model in bodies)
    assert usual.any()
    np.testing.assert_allclose(heavy, 1.5 * usual)


def test_variants_are_cut_where_the_task_is():
    task = hi.tasks.as_task("gym:InvertedPendulum-v5", horizon=50)
    worlds = task.variants(task.environment).values()
    assert worlds and all(world.horizon == 50 for world in worlds)


def test_a_robots_task_knows_its_variants_and_others_have_none():
    task = hi.tasks.as_task("gym:InvertedPendulum-v5")
    assert set(task.variants(task.environment)) == set(CHANGES)
    assert set(variants_of("gym:Hopper-v5")) == set(changes(3)) != set(CHANGES)
    assert variants_of("gym:CartPole-v1") == {}


def test_what_is_no_robot_cannot_be_changed():
    with pytest.raises(ValueError, match="CartPole-v1 is not one of the robots"):
        make_world("CartPole-v1", change=CHANGES["mass x1.5"])
    with pytest.raises(ValueError, match="robots that are made from an id"):
        make_world(lambda: None, change=CHANGES["mass x1.5"])
