"""What each task knows."""

import jax.numpy as jnp
import pytest

from hyperirl import demos, tasks
from hyperirl.environments import CartPole
from hyperirl.learning import complete
from hyperirl.options import Options


@pytest.mark.parametrize("env", tasks.names)
def test_the_temperature_is_the_papers_except_where_rewards_are_large(env):
    expected = 1.0 if env == "pendulum" else 0.1
    task = tasks.make(env)
    assert task.temperature == complete(Options(), task).temperature == expected


def test_a_temperature_that_is_given_is_kept():
    config = complete(Options(temperature=0.3), tasks.make("pendulum"))
    assert config.temperature == 0.3


@pytest.mark.parametrize(
    ("env", "millions"),
    [("cartpole", 1), ("lqr", 1), ("cartpole-fixed", 4), ("pendulum", 4)],
)
def test_fresh_policies_train_longer_where_untrained_ones_are_lost(env, millions):
    assert tasks.make(env).budget == millions * 1_000_000


@pytest.mark.parametrize("env", tasks.names)
def test_demonstrations_are_bundled_where_a_task_says_so(env):
    assert tasks.make(env).demos in {None, *demos.bundled}


def variants(env):
    task = tasks.make(env)
    return task.environment, task.variants(task.environment)


def test_variants_change_the_dynamics_and_not_the_reward():
    _, changed = variants("cartpole")
    assert changed["half_length x2"].half_length == 1.0
    assert jnp.isclose(changed["gravity x2"].gravity, 19.6)
    lqr, changed = variants("lqr")
    assert jnp.allclose(changed["B x0.5"].B, lqr.B / 2)
    drift = changed["A: drift x2"].A
    assert jnp.isclose(drift[0, 1], 2 * lqr.A[0, 1]) and drift[0, 0] == 1
    for world in changed.values():
        assert jnp.array_equal(world.Q, lqr.Q) and jnp.array_equal(world.R, lqr.R)
    assert len(variants("pendulum")[1]) == 2
    assert variants("grid-world")[1] == {}


def test_a_task_takes_changes_of_its_environment():
    task = tasks.make("cartpole", half_length=1.0)
    assert task.environment.half_length == 1.0 and task.name == "cartpole"
    with pytest.raises(ValueError, match="does not take these options"):
        tasks.make("cartpole", pole_len=2.0)
    with pytest.raises(ValueError, match="no task 'cart-pole'; choose one of cartpole"):
        tasks.make("cart-pole")


def test_an_environment_is_a_task_called_like_its_class():
    task = tasks.as_task(CartPole())
    assert task.name == "CartPole" and task.demos is None
    assert tasks.as_task(task) is task


@pytest.mark.parametrize(
    ("name", "reward"),
    [("gym:InvertedPendulum-v5", "additive"), ("gym:CartPole-v1", "mlp")],
)
def test_robots_have_settings_of_their_own(name, reward):
    """A reward that is a network lets a robot stand still."""
    config = complete(Options(), tasks.as_task(name))
    assert config.reward == reward
    assert config.adaptive == (reward == "mlp")


def test_what_pays_for_balance_alone_has_a_lower_temperature():
    """At 0.1 the best policy of InvertedPendulum falls now and then."""
    assert tasks.as_task("gym:InvertedPendulum-v5").temperature == 0.02
    assert tasks.as_task("gym:Hopper-v5").temperature == 0.1
