"""What holds for every environment: names, types, and changes without compiling."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from hyperirl import tasks
from hyperirl.spaces import Discrete

each_environment = pytest.mark.parametrize("name", tasks.names)


def any_action(environment):
    space = environment.action_space
    if isinstance(space, Discrete):
        return jnp.zeros((), jnp.int32)
    return jnp.zeros(space.size, jnp.float32)


@each_environment
def test_states_keep_their_types_and_observations_their_size(name):
    """What a `scan` over steps needs; a 64-bit leak shows here first."""
    environment = tasks.make(name).environment

    def first_and_next(key):
        state = environment.reset(key=key)
        transition = environment.step(state, any_action(environment), key=key)
        return state, transition, environment.observe(transition.state)

    state, transition, observation = jax.eval_shape(first_and_next, jr.key(0))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), transition.state
    )
    assert observation.shape == (environment.observation_size,)
    assert observation.dtype == transition.reward.dtype == jnp.float32
    assert transition.terminated.dtype == bool


@pytest.mark.parametrize(
    "name, changes",
    [
        ("cartpole", dict(half_length=1.0, gravity=20.0)),
        ("pendulum", dict(length=2.0)),
        ("lqr", dict(A=jnp.eye(4, dtype=jnp.float32), B=jnp.ones((4, 2), jnp.float32))),
        ("tabular", dict(rewards=jnp.ones((8, 3), jnp.float32))),
    ],
)
def test_parameters_change_without_compiling_again(name, changes):
    """Fails if a parameter is a Python number: those are constants of the program."""
    traces = 0

    @eqx.filter_jit
    def play(environment):
        nonlocal traces
        traces += 1
        state = environment.reset(key=jr.key(3))
        transition = environment.step(state, any_action(environment), key=jr.key(4))
        return transition.state, transition.reward

    environment = tasks.make(name).environment
    before = play(environment)
    after = play(dataclasses.replace(environment, **changes))
    assert traces == 1
    assert not eqx.tree_equal(before, after)


@pytest.mark.parametrize(
    "name, options, expected",
    [
        ("cartpole-fixed", {}, dict(terminates=False)),
        ("lqr-clipped", {}, dict(max_action=5.0, max_norm=50.0)),
        ("cartpole", dict(horizon=7), dict(horizon=7)),
        ("tabular", dict(num_states=3), dict(num_states=3)),
    ],
)
def test_make_gives_the_environment_of_that_name(name, options, expected):
    environment = tasks.make(name, **options).environment
    assert {field: getattr(environment, field) for field in expected} == expected
