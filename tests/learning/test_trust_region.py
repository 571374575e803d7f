"""Natural steps are taken back when they make things worse."""

import jax.numpy as jnp
import numpy as np
import pytest
from learning_setups import config_of, learner_of

from hyperirl import demos
from hyperirl.learning.step import outer_step
from hyperirl.learning.trust import Solved, Trust, judge
from hyperirl.rewards import TableReward


def _judge(trust: Trust, tried: Solved) -> Trust:
    return judge(trust, tried, slack=0.3, grow=2.0, shrink=0.25)


def solved(loss: float, name: float) -> Solved:
    mark = jnp.asarray(name, jnp.float32)
    reward = TableReward(mark.reshape(1, 1))
    return Solved(jnp.asarray(loss, jnp.float32), reward, mark)


def marks(trust: Trust) -> tuple[float, float]:
    """Whose reward and whose inner solution steps start from."""
    reward = trust.base.reward
    assert isinstance(reward, TableReward)
    return float(reward.table[0, 0]), float(trust.base.inner)


def trust(loss: float, moved: float = 2.0) -> Trust:
    radius, moved_by = jnp.float32(2.0), jnp.float32(moved)
    return Trust(solved(loss, 1.0), radius, moved_by)


def test_a_good_step_is_kept_and_the_next_may_be_longer():
    after = _judge(trust(10.0), solved(9.0, 2.0))
    assert marks(after) == (2.0, 2.0)
    np.testing.assert_allclose([after.base.loss, after.radius], [9.0, 4.0])


def test_a_bad_step_is_taken_back_with_its_policy_and_the_next_is_shorter():
    """The loss to beat rises a little, so that a lucky one does not block the run."""
    after = _judge(trust(10.0), solved(11.0, 2.0))
    assert marks(after) == (1.0, 1.0)
    np.testing.assert_allclose([after.base.loss, after.radius], [10.15, 0.5])


def test_a_loss_may_rise_by_the_slack_for_solutions_are_noisy():
    assert marks(_judge(trust(10.0), solved(10.29, 2.0))) == (2.0, 2.0)
    assert marks(_judge(trust(10.0), solved(10.31, 2.0))) == (1.0, 1.0)


def test_a_good_step_inside_the_region_does_not_widen_it():
    """Else it grows without bound while steps are short, and then cannot bind."""
    after = trust(10.0, moved=0.01)
    for _ in range(60):
        after = _judge(after, solved(9.0, 2.0))
    assert float(after.radius) == 2.0


def test_a_bad_step_inside_the_region_is_followed_by_a_shorter_one():
    after = _judge(trust(10.0, moved=0.4), solved(15.0, 2.0))
    np.testing.assert_allclose(after.radius, 0.1)


def test_a_loss_that_is_not_a_number_is_no_progress():
    assert marks(_judge(trust(10.0), solved(float("nan"), 2.0))) == (1.0, 1.0)


def test_the_first_solution_is_where_steps_start_from():
    after = _judge(trust(float("inf")), solved(50.0, 2.0))
    np.testing.assert_allclose([after.base.loss, after.radius], [50.0, 2.0])


@pytest.mark.parametrize(
    "env, said, natural, optimizer, rate",
    [
        ("lqr", {}, True, "sgd", 1.0),
        ("lqr", dict(natural=False), False, "adam", 3e-2),
        ("lqr", dict(method="ml-irl"), False, "adam", 3e-2),
        ("cartpole", {}, True, "sgd", 0.3),
        ("cartpole", dict(trust_region=True), True, "sgd", 1.0),
        ("cartpole", dict(natural=False), False, "adam", 1e-3),
        ("pendulum", {}, False, "adam", 3e-3),
        ("lqr", dict(paper=True), False, "sgd", 0.1),
        ("gym:Pendulum-v1", {}, True, "sgd", 0.5),
        ("gym:Pendulum-v1", dict(method="ml-irl"), False, "adam", 3e-3),
        ("gym:Pendulum-v1", dict(natural=False), False, "adam", 3e-3),
        ("gym:Pendulum-v1", dict(natural=False, learning_rate=1.0), False, "adam", 1.0),
        ("gym:Pendulum-v1", dict(paper=True), False, "sgd", 0.1),
    ],
)
def test_the_optimizer_suits_the_kind_of_step(env, said, natural, optimizer, rate):
    config = config_of(env, **said)
    assert config.natural == natural
    assert (config.optimizer, config.learning_rate) == (optimizer, rate)


def test_without_a_trust_region_steps_are_as_long_as_allowed_and_none_is_taken_back():
    """Twice as long where four times the divergence is: it is quadratic in the step."""
    shown = demos.collect("tabular", 40, seed=0)

    def first_step(step_kl: float):
        said = dict(trust_region=False, step_kl=step_kl)
        learner, first = learner_of("tabular", shown, 8, **said)
        state, row, _ = outer_step(learner, first, 8, jnp.float32(0.0))
        assert state.trust is None and row.radius is None
        return state.reward.table - first.reward.table

    longer = first_step(4e-4)
    assert np.any(longer != 0)
    np.testing.assert_allclose(longer, 2 * first_step(1e-4), rtol=1e-4)
