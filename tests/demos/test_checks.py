import numpy as np
import pytest

from hyperirl import demos, tasks
from hyperirl.demos import DemosError, check_against, from_flat


def test_demos_that_fit_pass(flat):
    check_against(from_flat(flat), tasks.make("cartpole").environment)


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("pendulum", {}, "observations of 4 numbers, and Pendulum has 3"),
        ("lqr", {}, "whole numbers as actions, and those of LQR are vectors of 2"),
        ("cartpole", {"horizon": 3}, "up to 4 steps, and CartPole is cut after 3"),
    ],
)
def test_demos_of_another_environment_are_refused(flat, name, options, message):
    with pytest.raises(DemosError, match=message):
        check_against(from_flat(flat), tasks.make(name, **options).environment)


def test_a_choice_out_of_range_is_refused(flat):
    flat["actions"][3] = 2
    with pytest.raises(DemosError, match="an action 2, .* numbers below 2"):
        check_against(from_flat(flat), tasks.make("cartpole").environment)


def test_vectors_are_no_choices(flat):
    flat["actions"] = np.zeros((7, 1))
    with pytest.raises(DemosError, match="vectors as actions"):
        check_against(from_flat(flat), tasks.make("cartpole").environment)


def test_vectors_of_another_size_are_refused(flat):
    flat["actions"] = np.zeros((7, 3))
    with pytest.raises(DemosError, match="actions of 3 numbers, and LQR has 2"):
        check_against(from_flat(flat), tasks.make("lqr").environment)


@pytest.mark.parametrize("action, fits", [(2.0, True), (-2.0, True), (2.1, False)])
def test_vectors_must_lie_in_the_box(flat, action, fits):
    flat["observations"] = flat["observations"][:, :3]
    flat["actions"] = np.full((7, 1), action)
    loaded, pendulum = from_flat(flat), tasks.make("pendulum").environment
    if fits:
        check_against(loaded, pendulum)
    else:
        with pytest.raises(DemosError, match=r"an action 2\.1, .* in \[-2, 2\]"):
            check_against(loaded, pendulum)


def test_any_vector_fits_an_unbounded_box(flat):
    flat["actions"] = np.full((7, 2), 1e6)
    check_against(from_flat(flat), tasks.make("lqr").environment)


def test_the_environment_is_made_with_its_recorded_options(provenance):
    environment = demos.environment_of(provenance)
    assert environment.horizon == 200 and environment.half_length == 1.0
    assert demos.environment_of(demos.Provenance(environment="gym:Hopper-v5")) is None
