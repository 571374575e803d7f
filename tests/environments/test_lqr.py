"""LQR: the formula, the noise, the two limits, and what is refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.environments import LQR

STATE = jnp.array([1.0, -2.0, 0.5, 3.0], jnp.float32)
ACTION = jnp.array([7.0, -0.5], jnp.float32)


def system(**changes):
    """A system in which every matrix is different and none is symmetric by chance."""
    rng = np.random.default_rng(0)
    root = 0.3 * np.tril(rng.normal(size=(4, 4)))
    fields = dict(
        A=rng.normal(size=(4, 4)),
        B=rng.normal(size=(4, 2)),
        Q=root @ root.T,
        R=np.diag([0.2, 0.4]),
        noise_root=root,
        initial_root=2 * root,
    )
    return LQR(**fields | changes)


def still(**changes):
    return system(noise_root=np.zeros((4, 4)), **changes)


def test_the_default_is_the_system_of_the_paper():
    """Positions move by a tenth of their velocities; velocities are coupled by 0.02."""
    environment = LQR()
    moved = environment.A @ STATE + environment.B @ ACTION
    np.testing.assert_allclose(moved, [0.8, -1.24, 0.8, 2.91], rtol=1e-6)
    np.testing.assert_allclose(jnp.diagonal(environment.Q), [1, 0.1, 1, 0.1])
    np.testing.assert_allclose(environment.R, 0.1 * np.eye(2))
    covariance = environment.noise_root @ environment.noise_root.T
    np.testing.assert_allclose(covariance, 1e-3 * np.eye(4), rtol=1e-6)
    np.testing.assert_array_equal(environment.initial_root, np.diag([1, 0.5, 1, 0.5]))
    assert environment.horizon == 100


def test_the_next_state_is_linear():
    environment = still()
    state, _ = environment.advance(STATE, ACTION, key=jr.key(0))
    expected = environment.A @ STATE + environment.B @ ACTION
    np.testing.assert_allclose(state, expected, rtol=1e-5)


def test_the_reward_is_minus_the_quadratic_cost():
    environment = still()
    s, a, Q, R = map(np.asarray, (STATE, ACTION, environment.Q, environment.R))
    np.testing.assert_allclose(
        environment.reward(STATE, ACTION), -(s @ Q @ s + a @ R @ a), rtol=1e-5
    )


@pytest.mark.parametrize("which, factor", [("noise", 1.0), ("initial", 2.0)])
def test_noise_has_the_covariance_of_its_root(which, factor):
    """`root root'` and not `root' root`, within five standard errors."""
    environment = system(A=np.zeros((4, 4)), B=np.zeros((4, 2)))
    draw = {
        "noise": lambda key: environment.advance(STATE, ACTION, key=key)[0],
        "initial": lambda key: environment.reset(key=key),
    }[which]
    x = np.asarray(jax.jit(jax.vmap(draw))(jr.split(jr.key(1), 4000)))
    products = x[:, :, None] * x[:, None, :]
    root = factor * np.asarray(environment.noise_root)
    error = products.mean(axis=0) - root @ root.T
    assert (np.abs(error) < 5 * products.std(axis=0) / np.sqrt(4000)).all()


def test_actions_are_clipped_before_they_act():
    environment = still(max_action=5.0)
    clipped = jnp.array([5.0, -0.5], jnp.float32)
    state, _ = environment.advance(STATE, ACTION, key=jr.key(0))
    expected, _ = environment.advance(STATE, clipped, key=jr.key(0))
    assert (state == expected).all()


def test_actions_are_clipped_before_they_are_paid_for():
    environment = still(max_action=5.0)
    clipped = jnp.array([5.0, -0.5], jnp.float32)
    assert environment.reward(STATE, ACTION) == environment.reward(STATE, clipped)


@pytest.mark.parametrize("max_norm, over", [(6.9, True), (7.1, False)])
def test_the_episode_ends_outside_the_ball(max_norm, over):
    environment = still(A=np.eye(4), B=np.zeros((4, 2)), max_norm=max_norm)
    state = jnp.array([0.0, 7.0, 0.0, 0.0], jnp.float32)
    _, terminated = environment.advance(state, ACTION, key=jr.key(0))
    assert bool(terminated) is over


def test_64_bit_systems_stay_64_bit():
    """Exact solutions are computed on them."""
    arrays = {
        name: jnp.asarray(getattr(system(), name), jnp.float64) for name in "ABQR"
    }
    root = jnp.eye(4, dtype=jnp.float64)
    environment = LQR(**arrays, noise_root=root, initial_root=root)
    assert environment.reset(key=jr.key(0)).dtype == jnp.float64


def test_mixed_types_are_refused():
    with pytest.raises(ValueError, match="same type, got A: float64, B: float32"):
        LQR(A=jnp.eye(4, dtype=jnp.float64))


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises((ValueError, TypeError), match="Q"):
        system(Q=np.eye(3))
