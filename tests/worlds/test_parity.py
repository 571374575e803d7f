"""A batch of robots is Gymnasium's, bit for bit."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("mujoco.batch")

from hyperirl.worlds.mujoco import MujocoStepper
from hyperirl.worlds.parity import compare
from hyperirl.worlds.robots import ROBOTS, Ant, Hopper

NAMES = pytest.mark.parametrize("name", ROBOTS)
OPTIONS = {
    "InvertedPendulum-v5": dict(frame_skip=3, reset_noise_scale=0.05),
    "InvertedDoublePendulum-v5": dict(healthy_reward=3.0, reset_noise_scale=0.02),
    "Swimmer-v5": dict(forward_reward_weight=2.0, frame_skip=2),
    "Hopper-v5": dict(terminate_when_unhealthy=False, healthy_reward=0.3),
    "HalfCheetah-v5": dict(exclude_current_positions_from_observation=False),
    "Walker2d-v5": dict(healthy_z_range=(1.0, 1.5), ctrl_cost_weight=0.1),
    "Ant-v5": dict(include_cfrc_ext_in_observation=False, contact_cost_weight=0.1),
}


@NAMES
def test_steps_rewards_ends_and_resets_are_those_of_gymnasium(name):
    """Fails for a wrong type of the control cost, or a reward from stale positions."""
    found = compare(name, 3, 60)
    assert found.steps == 180
    assert found.mismatches == 0


@NAMES
def test_options_mean_what_they_mean_in_gymnasium(name):
    found = compare(name, 2, 40, seed=1, **OPTIONS[name])
    assert found.mismatches == 0


def test_robots_that_can_fall_do_so_in_the_comparison():
    """Else nothing was said about terminations."""
    names = ["InvertedPendulum-v5", "Hopper-v5", "Walker2d-v5"]
    assert all(compare(name, 3, 60).terminations > 0 for name in names)


def everyone(stepper):
    return np.arange(stepper.num_envs)


@NAMES
def test_a_robot_can_start_where_it_was_seen(name):
    robot = ROBOTS[name]()
    stepper, other = (MujocoStepper(robot, 3) for _ in range(2))
    rng = np.random.default_rng(0)
    for each in (stepper, other):
        each.restart(everyone(each), rng=rng)
    seen = stepper.observe()
    other.start_at(np.array([0, 2]), seen[[0, 2]])
    again, size = other.observe(), other.model.nq + other.model.nv
    np.testing.assert_allclose(again[[0, 2], :size], seen[[0, 2], :size], atol=1e-12)
    assert not np.allclose(again[1], seen[1])


def test_a_robot_that_starts_where_it_was_seen_stands_at_zero():
    stepper = MujocoStepper(Hopper(), 1)
    stepper.restart(everyone(stepper), rng=np.random.default_rng(0))
    stepper.start_at(everyone(stepper), stepper.observe())
    assert stepper._positions[0, 0] == 0


@pytest.mark.parametrize("name", ["Hopper-v5", "Ant-v5", "InvertedDoublePendulum-v5"])
def test_a_saved_robot_goes_on_to_the_bit(name):
    """In another stepper: as after a run was killed. Ant's place is one step behind."""
    first, second = (MujocoStepper(ROBOTS[name](), 4) for _ in range(2))
    rng = np.random.default_rng(0)
    for stepper in (first, second):
        stepper.restart(everyone(stepper), rng=rng)
    actions = rng.uniform(-1, 1, (20, 4, first.action_space.size)).astype(np.float32)
    for action in actions[:10]:
        first.step(action)
    second.load_state(first.save_state())
    np.testing.assert_array_equal(first.observe(), second.observe())
    for action in actions[10:]:
        ours, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(ours.observations, theirs.observations)
        np.testing.assert_array_equal(ours.rewards, theirs.rewards)


def test_idle_robots_stay_where_they_are():
    stepper = MujocoStepper(Hopper(), 3)
    stepper.restart(everyone(stepper), rng=np.random.default_rng(0))
    before = stepper.observe()
    after = stepper.step(np.ones((3, 3), np.float32), idle=np.array([1, 0, 1], bool))
    moved = (after.observations != before).any(axis=1)
    assert moved.tolist() == [False, True, False]


def test_a_changed_model_is_simulated():
    def light(model):
        model.opt.gravity[2] = -1.0

    usual, changed = (
        MujocoStepper(Hopper(), 1),
        MujocoStepper(Hopper(), 1, change=light),
    )
    for stepper in (usual, changed):
        stepper.restart(everyone(stepper), rng=np.random.default_rng(0))
        for _ in range(5):
            stepper.step(np.zeros((1, 3), np.float32))
    assert changed.observe()[0, 0] > usual.observe()[0, 0]


def test_a_body_is_named_by_its_number():
    with pytest.raises(TypeError, match="number"):
        Ant(main_body="torso")


def test_every_option_of_a_robot_is_one_of_gymnasium():
    """So that whatever is taken from a spec means the same."""
    import inspect

    import gymnasium

    for name, robot in ROBOTS.items():
        entry = gymnasium.envs.registration.load_env_creator(
            gymnasium.spec(name).entry_point
        )
        theirs = inspect.signature(entry.__init__).parameters
        for field in dataclasses.fields(robot):
            assert theirs[field.name].default == field.default
