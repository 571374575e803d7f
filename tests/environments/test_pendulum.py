"""Pendulum against Gymnasium's, one step at a time."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import Pendulum

pytestmark = pytest.mark.usefixtures("optimized")

NUM_STATES = 4000
CHANGES = {"v1": {}, "changed": dict(gravity=9.0, mass=1.3, length=0.8, time_step=0.04)}


@eqx.filter_jit
def our_steps(environment, states, actions):
    def step(state, action):
        transition = environment.step(state, action, key=jr.key(0))
        return transition, environment.observe(transition.state)

    return jax.vmap(step)(states, actions)


@pytest.fixture(scope="module", params=CHANGES.values(), ids=CHANGES.keys())
def compared(request):
    """Angles beyond a turn and torques beyond the limit included."""
    changes = request.param
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.g, env.m = changes.get("gravity", env.g), changes.get("mass", env.m)
    env.l, env.dt = changes.get("length", env.l), changes.get("time_step", env.dt)
    rng = np.random.default_rng(0)
    states = rng.uniform([-10, -8], [10, 8], (NUM_STATES, 2)).astype(np.float32)
    actions = rng.uniform(-3, 3, (NUM_STATES, 1)).astype(np.float32)
    theirs = []
    for state, action in zip(states.astype(np.float64), actions, strict=True):
        env.state = state
        observation, reward, terminated, _, _ = env.step(action)
        theirs.append((env.state, observation, reward, terminated))
    ours = our_steps(Pendulum(**changes), jnp.asarray(states), jnp.asarray(actions))
    return ours, [np.array(column) for column in zip(*theirs, strict=True)]


def test_next_states_agree(compared):
    """To a few units in the last place of `float32` at the size of these states."""
    (transition, _), (states, _, _, _) = compared
    np.testing.assert_allclose(transition.state, states, rtol=0, atol=4e-6)


def test_observations_agree(compared):
    (_, ours), (_, observations, _, _) = compared
    np.testing.assert_allclose(ours, observations, rtol=0, atol=4e-6)


def test_rewards_agree(compared):
    """Rewards reach -17; an angle of 10 carries an error of 5e-7 into its square."""
    (transition, _), (_, _, rewards, _) = compared
    np.testing.assert_allclose(transition.reward, rewards, rtol=2e-6, atol=1e-6)


def test_it_never_terminates(compared):
    (transition, _), (_, _, _, terminated) = compared
    assert not transition.terminated.any() and not terminated.any()


def test_it_is_cut_where_gymnasium_cuts_it():
    assert Pendulum().horizon == gymnasium.spec("Pendulum-v1").max_episode_steps


def test_actions_have_the_bounds_of_gymnasium():
    space = gymnasium.make("Pendulum-v1").action_space
    ours = Pendulum().action_space
    assert (ours.size, ours.low, ours.high) == (1, space.low[0], space.high[0])


def test_first_states_are_spread_as_in_gymnasium():
    """Uniform up to pi and 1: the second moment is a third of the square."""
    states = jax.jit(jax.vmap(lambda key: Pendulum().reset(key=key)))(
        jr.split(jr.key(0), 4000)
    )
    units = np.asarray(states) / np.array([np.pi, 1.0])
    assert np.abs(units).max() <= 1
    error = np.abs((units**2).mean(axis=0) - 1 / 3)
    assert (error < 5 * np.sqrt((1 / 5 - 1 / 9) / 4000)).all()
