"""The identities behind the hypergradient, on LQR, with nothing sampled.

Each docstring names changes to the code under which the test was seen to fail.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from hyperirl.exact import lqr as exact
from hyperirl.rollout import rollout

ROUNDING = 1e-10
STENCIL = [1 / 12, -2 / 3, 0, 2 / 3, -1 / 12]  # The derivative, to fourth order.


solve = eqx.filter_jit(exact.soft_optimal_policy)
true_reward = eqx.filter_jit(exact.true_reward)


def optimal_policy(quadratic):
    return solve(quadratic.lqr, quadratic.reward, quadratic.problem)


def curvatures(quadratic):
    """At the optimum: the Fisher, the Hessian of the inner loss, and of the NLL."""
    return _curvatures(quadratic, optimal_policy(quadratic))


@eqx.filter_jit
def _curvatures(quadratic, policy):
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    theta, make = exact.parameters(policy)
    own = exact.moments(lqr, policy, problem.discount)
    inner = lambda theta: exact.inner_loss(lqr, make(theta), reward, problem)
    surprise = lambda theta: exact.negative_log_likelihood(make(theta), own)
    return {
        "fisher": exact.fisher(lqr, policy, problem),
        "inner": jax.hessian(inner)(theta),
        "surprise": jax.hessian(surprise)(theta),
        "slope": jax.grad(inner)(theta),
    }


def hypergradients(quadratic, expert):
    """Implicit, by autodiff through the Riccati equation, and that of ML-IRL."""
    return _hypergradients(quadratic, optimal_policy(quadratic), expert)


@eqx.filter_jit
def _hypergradients(quadratic, policy, expert):
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    args = lqr, policy, reward, problem, expert
    return {
        "implicit": exact.implicit_hypergradient(*args),
        "exact": exact.hypergradient(lqr, reward, problem, expert),
        "ml-irl": exact.ml_irl_gradient(*args),
    }


@eqx.filter_jit
def differences(quadratic, expert, step=1e-3):
    """Central differences of the outer loss, entry by entry."""
    lqr, problem = quadratic.lqr, quadratic.problem
    phi, make = ravel_pytree(quadratic.reward)

    def loss(phi):
        policy = exact.soft_optimal_policy(lqr, make(phi), problem)
        return exact.negative_log_likelihood(policy, expert)

    def slope(direction):
        at = jax.vmap(lambda k: loss(phi + k * step * direction))
        return jnp.array(STENCIL) @ at(jnp.arange(-2.0, 3)) / step

    return make(jax.vmap(slope)(jnp.eye(phi.size)))


def experts(quadratic, key):
    """Moments of the expert itself, and of 10 demonstrations of 20 steps."""
    reward = true_reward(quadratic.lqr)
    policy = solve(quadratic.lqr, reward, quadratic.problem)
    return _experts(quadratic, policy, key)


@eqx.filter_jit
def _experts(quadratic, policy, key):
    lqr, problem = quadratic.lqr, quadratic.problem
    demos = rollout(lqr, policy, 10, key=key, horizon=20)
    return {
        "population": exact.moments(lqr, policy, problem.discount),
        "demos": exact.demo_moments(demos, problem.discount),
    }


def test_at_the_optimum_the_hessian_is_temperature_times_fisher(quadratic, close):
    """Fails if `fisher` or `inner_loss` drops the discount, or the loss its sign."""
    found = curvatures(quadratic)
    close(quadratic.problem.temperature * found["fisher"], found["inner"], ROUNDING)


def test_the_riccati_policy_makes_the_inner_loss_stationary(quadratic):
    """Fails if the inner loss, or the covariance, drops the temperature."""
    found = curvatures(quadratic)
    scale = jnp.max(jnp.abs(found["inner"]))
    assert jnp.max(jnp.abs(found["slope"])) < ROUNDING * scale


def test_the_fisher_is_the_curvature_of_the_policys_own_likelihood(quadratic, close):
    """`E score score' = -E Hessian of log pi`, with the moments held fixed.

    Fails if the Fisher drops the discount, or takes the Kronecker product in the other
    order.
    """
    found = curvatures(quadratic)
    close(found["fisher"], found["surprise"], ROUNDING)


@pytest.mark.parametrize("data", ["population", "demos"])
def test_implicit_gradient_is_the_derivative_through_the_riccati_equation(
    quadratic, getkey, close, data
):
    """By autodiff, whatever the expert's data.

    Fails if the implicit one drops the temperature, the discount or its sign.
    """
    found = hypergradients(quadratic, experts(quadratic, getkey())[data])
    close(found["implicit"], found["exact"], ROUNDING)


@pytest.mark.parametrize("data", ["population", "demos"])
def test_autodiff_through_the_riccati_equation_is_finite_differences(
    quadratic, getkey, close, data
):
    """To 1e-8, the accuracy of the differences.

    Fails if the last Newton steps on the Riccati equation are not differentiated.
    """
    expert = experts(quadratic, getkey())[data]
    exact_one = hypergradients(quadratic, expert)["exact"]
    close(exact_one, differences(quadratic, expert), 1e-8)


def test_for_moments_the_dynamics_explain_it_is_the_ml_irl_gradient(
    quadratic, getkey, close
):
    """Fails if either drops the temperature, the discount or its sign."""
    found = hypergradients(quadratic, experts(quadratic, getkey())["population"])
    close(found["ml-irl"], found["exact"], ROUNDING)


def test_for_finite_data_it_is_not(quadratic, getkey):
    """With 10 demonstrations ML-IRL is not the gradient of their likelihood."""
    found = hypergradients(quadratic, experts(quadratic, getkey())["demos"])
    flat = lambda name: np.asarray(ravel_pytree(found[name])[0])
    error = np.max(np.abs(flat("ml-irl") - flat("exact")))
    assert error > 0.02 * np.max(np.abs(flat("exact")))
