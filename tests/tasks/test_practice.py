import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import CartPole
from hyperirl.problem import problem
from hyperirl.tasks.practice import scattered


@pytest.fixture(params=[True, False], ids=["terminates", "fixed"])
def task(request):
    return CartPole(terminates=request.param)


def test_steps_are_those_of_the_task(task, getkey):
    """Up to where the cart is lost, dynamics and rewards are the same."""
    practice = scattered(task, problem(), 0.0)
    states = jax.vmap(lambda key: practice.reset(key=key))(jr.split(getkey(), 500))
    actions = jr.randint(getkey(), (500,), 0, 2, jnp.int32)

    @jax.jit
    def steps(states, actions):
        step = lambda world: jax.vmap(
            lambda s, a: world.step(s, a, key=jr.key(0)), in_axes=(0, 0)
        )(states, actions)
        return step(practice), step(task)

    ours, theirs = steps(states, actions)
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.reward, theirs.reward)
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)


def test_starts_are_usual_or_within_the_spread(task, getkey):
    practice = scattered(task, problem(), 0.5)
    states = jax.vmap(lambda key: practice.reset(key=key))(jr.split(getkey(), 2000))
    usual = jnp.all(jnp.abs(states) <= 0.05, axis=1)
    assert abs(jnp.mean(usual) - 0.75) < 0.05
    limits = practice.spread + jnp.float32(0.05)
    assert jnp.all(jnp.abs(states) <= limits[None, :])
    assert jnp.all(jax.vmap(task.upright)(states))


def test_a_lost_cart_is_paid_out_once():
    """Its value is that of uniform actions without reward, discounted by one step."""
    practice = scattered(CartPole(terminates=False), problem(0.1, 0.99), 0.0)
    state = jnp.array([4.79, 2.0, 0.0, 0.0], jnp.float32)
    step = practice.step(state, jnp.int32(1), key=jr.key(0))
    assert step.terminated
    assert step.reward == pytest.approx(0.99 * 0.1 * np.log(2) / 0.01, rel=1e-4)
