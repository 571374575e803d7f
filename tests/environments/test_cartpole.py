"""CartPole against Gymnasium's, one step at a time: long replays drift in float32."""

import dataclasses
import math

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import CartPole
from hyperirl.networks import linear_map
from hyperirl.policies import CategoricalHead, Policy
from hyperirl.rollout import rollout

pytestmark = pytest.mark.usefixtures("optimized")

NUM_STATES = 4000


def balancing_policy():
    """Pushes towards the side the pole falls to; as good as deterministic."""
    push = jnp.array([0.2, 0.5, 6.0, 1.5], jnp.float32)
    weight = jnp.stack([-1e3 * push, 1e3 * push])
    return Policy(linear_map(weight), jnp.zeros(0, jnp.float32), CategoricalHead(2))


def random_states():
    rng = np.random.default_rng(0)
    high = np.array([3.0, 3.0, 0.3, 3.0])
    states = rng.uniform(-high, high, (NUM_STATES, 4)).astype(np.float32)
    return states, rng.integers(0, 2, NUM_STATES).astype(np.int32)


def gymnasium_steps(env, states, actions):
    """Next states, rewards and terminations, from every state on its own."""
    results = []
    for state, action in zip(states.astype(np.float64), actions, strict=True):
        env.state, env.steps_beyond_terminated = state, None
        _, reward, terminated, _, _ = env.step(action)
        results.append((env.state, reward, terminated))
    return [np.array(column) for column in zip(*results, strict=True)]


@eqx.filter_jit
def our_steps(environment, states, actions):
    step = lambda state, action: environment.step(state, action, key=jr.key(0))
    return jax.vmap(step)(states, actions)


def twins(changes):
    """Our environment and Gymnasium's, with the same changes to the dynamics."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.gravity = changes.get("gravity", env.gravity)
    env.length = changes.get("half_length", env.length)
    env.masspole = changes.get("pole_mass", env.masspole)
    env.masscart = changes.get("cart_mass", env.masscart)
    env.force_mag = changes.get("force", env.force_mag)
    env.tau = changes.get("time_step", env.tau)
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length
    return CartPole(**changes), env


CHANGES = {
    "v1": {},
    "changed": dict(
        gravity=12.0,
        half_length=0.9,
        pole_mass=0.3,
        cart_mass=1.5,
        force=7.0,
        time_step=0.03,
    ),
}


@pytest.fixture(scope="module", params=CHANGES.values(), ids=CHANGES.keys())
def compared(request):
    ours, env = twins(request.param)
    states, actions = random_states()
    transition = our_steps(ours, jnp.asarray(states), jnp.asarray(actions))
    return transition, gymnasium_steps(env, states, actions)


def test_next_states_agree(compared):
    """To a few units in the last place of `float32` at the size of these states."""
    transition, (states, _, _) = compared
    np.testing.assert_allclose(transition.state, states, rtol=0, atol=2e-6)


def test_terminations_agree(compared):
    """Except where rounding decides on which side of a limit a state is."""
    transition, (states, _, terminated) = compared
    limits = np.array([2.4, 12 * math.pi / 180])
    clear = (np.abs(np.abs(states[:, [0, 2]]) - limits) > 1e-6).all(axis=1)
    assert clear.mean() > 0.99
    assert 0.2 < terminated.mean() < 0.9  # Both outcomes are compared.
    assert (np.asarray(transition.terminated) == terminated)[clear].all()


def test_rewards_agree(compared):
    transition, (_, rewards, _) = compared
    assert np.asarray(transition.reward).tolist() == rewards.tolist()


def test_first_states_are_as_in_gymnasium():
    """Uniform within 0.05: mean 0 and variance 0.05^2 / 3, in five standard errors."""
    states = jax.jit(jax.vmap(lambda key: CartPole().reset(key=key)))(
        jr.split(jr.key(0), 4000)
    )
    states = np.asarray(states) / 0.05
    assert np.abs(states).max() <= 1
    assert (np.abs(states.mean(axis=0)) < 5 * np.sqrt(1 / 3 / 4000)).all()
    variance_error = np.abs((states**2).mean(axis=0) - 1 / 3)
    assert (variance_error < 5 * np.sqrt((1 / 5 - 1 / 9) / 4000)).all()


@pytest.fixture(scope="module")
def balanced():
    return rollout(CartPole(), balancing_policy(), 8, key=jr.key(0))


def test_episodes_are_cut_after_500_steps_as_in_gymnasium(balanced):
    """Truncated and not terminated, on the step on which `TimeLimit` says so."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    push_right = np.asarray(balancing_policy().network.layers[0].weight[1])
    steps, over = 0, False
    while not over:
        action = int(push_right @ observation > 0)
        observation, _, terminated, truncated, _ = env.step(action)
        steps, over = steps + 1, terminated or truncated
    assert truncated and not terminated
    assert set(balanced.lengths.tolist()) == {steps}
    assert not balanced.terminated.any()


def test_the_return_of_a_balanced_pole_is_500(balanced):
    assert set(jnp.sum(balanced.rewards, axis=1).tolist()) == {500.0}


def fixed_rollout():
    policy = eqx.tree_at(
        lambda p: p.network.layers[0].weight,
        balancing_policy(),
        replace_fn=jnp.negative,
    )
    return rollout(CartPole(terminates=False), policy, 8, key=jr.key(0), horizon=200)


def test_without_termination_every_episode_has_the_same_length():
    """The policy throws the pole down on purpose, and nothing ends."""
    fallen = fixed_rollout()
    assert fallen.mask.all() and not fallen.terminated.any()
    assert (fallen.rewards[:, -1] == 0).all()


def test_without_termination_the_reward_is_1_exactly_while_upright():
    fallen = fixed_rollout()
    x, angle = fallen.observations[:, :-1, 0], fallen.observations[:, :-1, 2]
    upright = (jnp.abs(x) <= 2.4) & (jnp.abs(angle) <= np.float32(12 * math.pi / 180))
    assert (fallen.rewards == upright.astype(jnp.float32)).all()
    assert 0 < fallen.rewards.mean() < 1


def test_without_termination_the_angle_is_wrapped():
    """To `[-pi, pi]`, and by whole turns: the pole's tip stays where it is."""
    angles = jnp.array([3.2, -3.2, 9.0, 0.1], jnp.float32)
    states = jnp.zeros((4, 4), jnp.float32).at[:, 2].set(angles)
    actions = jnp.zeros(4, jnp.int32)
    wrapped = our_steps(CartPole(terminates=False), states, actions).state[:, 2]
    assert (jnp.abs(wrapped) <= np.float32(np.pi)).all()
    np.testing.assert_allclose(np.sin(wrapped), np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(np.cos(wrapped), np.cos(angles), atol=1e-6)


def test_without_termination_the_observation_ends_where_a_fall_is_long_over():
    """At twice the limits and at 5 m/s or rad/s; the state itself goes on."""
    inside = jnp.array([2.3, -4.9, 0.2, 4.9], jnp.float32)
    outside = jnp.array([-300.0, 20.0, 3.0, -30.0], jnp.float32)
    fixed = CartPole(terminates=False)
    np.testing.assert_array_equal(fixed.observe(inside), inside)
    edge = [-4.8, 5.0, 24 * math.pi / 180, -5.0]
    np.testing.assert_allclose(fixed.observe(outside), edge, rtol=1e-6)
    assert fixed.reward(fixed.observe(outside), jnp.int32(0)) == 0
    np.testing.assert_array_equal(CartPole().observe(outside), outside)
    assert jnp.abs(fixed.advance(outside, jnp.int32(0), key=None)[0][0]) > 290


@pytest.mark.parametrize("value", [20.0, np.float64(20.0), jnp.float64(20.0)], ids=str)
def test_parameters_are_in_single_precision_whatever_is_given(value):
    """A 64-bit one would make the state 64-bit after the first step."""
    changed = dataclasses.replace(CartPole(), gravity=value)
    assert changed.gravity.dtype == jnp.float32
