"""The soft Riccati solution, moments and losses of LQR, against independent answers.

Each docstring names changes to the code under which the test was seen to fail.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from hyperirl.environments import LQR
from hyperirl.exact import lqr as exact
from hyperirl.policies import linear_gaussian, log_probs, mlp_policy
from hyperirl.problem import Problem
from hyperirl.spaces import Box
from hyperirl.trajectories import Trajectories, returns

ROUNDING = 1e-11

solve = jax.jit(exact.soft_riccati)
moments = eqx.filter_jit(exact.moments)
inner_loss = eqx.filter_jit(exact.inner_loss)
gap = eqx.filter_jit(exact.optimality_gap)


optimal_policy = eqx.filter_jit(exact.soft_optimal_policy)


true_reward = eqx.filter_jit(exact.true_reward)


def expert_policy(quadratic):
    """The soft-optimal one for the environment's own reward."""
    reward = true_reward(quadratic.lqr)
    return optimal_policy(quadratic.lqr, reward, quadratic.problem)


def test_the_riccati_solution_is_scipys(quadratic, close):
    """Fails without the discount, or with a sign changed, in `riccati`."""
    lqr, reward = quadratic.lqr, quadratic.reward
    root = np.sqrt(float(quadratic.problem.discount))
    expected = scipy.linalg.solve_discrete_are(
        root * np.asarray(lqr.A),
        root * np.asarray(lqr.B),
        np.asarray(reward.state_cost),
        np.asarray(reward.action_cost),
    )
    close(solve(lqr, reward, quadratic.problem).P, expected, ROUNDING)


@jax.jit
def both_sides(lqr, reward, problem, s, a):
    solution = exact.soft_riccati(lqr, reward, problem)
    scale = jnp.linalg.cholesky(solution.covariance)
    policy = linear_gaussian(solution.gain, scale)
    noise = jnp.sum((lqr.noise_root @ lqr.noise_root.T) * solution.P)
    later = jax.vmap(solution.value)(s @ lqr.A.T + a @ lqr.B.T) - noise
    q = jax.vmap(reward)(s, a) + problem.discount * later
    advantage = q - jax.vmap(solution.value)(s)
    return problem.temperature * jax.vmap(policy.log_prob)(s, a), advantage


def test_the_policy_is_the_softmax_of_its_own_action_values(quadratic, close):
    """`alpha log pi(a | s) = q(s, a) - v(s)` at any state and action.

    `q = r + gamma E v(s')`, with the expectation over the noise in closed form. This
    fixes gain, covariance, `P` and the constant at once.
    Fails without the discount or the temperature anywhere, or the noise's trace.
    """
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem

    rng = np.random.default_rng(0)
    states, actions = jnp.asarray(rng.normal(size=(9, 3))), rng.normal(size=(9, 2))
    close(*both_sides(lqr, reward, problem, states, jnp.asarray(actions)), ROUNDING)


def test_the_inner_loss_of_the_solution_is_minus_its_expected_value(quadratic, close):
    """Forwards by moments (Lyapunov), backwards by values (Riccati).

    Fails without the discount, temperature or sign in either.
    """
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    solution, policy = solve(lqr, reward, problem), optimal_policy(lqr, reward, problem)
    root = np.asarray(lqr.initial_root)
    value = solution.constant - np.sum((root @ root.T) * solution.P)
    close(inner_loss(lqr, policy, reward, problem), -value, ROUNDING)


def test_the_gap_is_the_excess_inner_loss(quadratic, close):
    """Fails without the temperature, or with the two policies exchanged."""
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    policy = expert_policy(quadratic)
    best = optimal_policy(lqr, reward, problem)
    loss = lambda policy: inner_loss(lqr, policy, reward, problem)
    close(gap(lqr, policy, reward, problem), loss(policy) - loss(best), 1e-10)
    assert jnp.abs(gap(lqr, best, reward, problem)) < ROUNDING


def test_infinite_moments_are_the_limit_of_finite_ones(quadratic, close):
    """Fails without the discount in either, or without the noise in one of them."""
    args = quadratic.lqr, expert_policy(quadratic), quadratic.problem.discount
    close(moments(*args), moments(*args, horizon=1000), ROUNDING)


def test_moments_of_an_unstable_loop_are_not_a_number(quadratic):
    """The linear solve would give a matrix; it is not the sum, which is infinite."""
    lqr = eqx.tree_at(lambda e: e.A, quadratic.lqr, 3 * quadratic.lqr.A)
    args = lqr, expert_policy(quadratic), quadratic.problem.discount
    assert np.all(np.isnan(moments(*args).states))
    assert np.all(np.isfinite(moments(*args, horizon=5).states))


@eqx.filter_jit
def mean_likelihoods(policy, demos, gamma):
    behavior = exact.demo_moments(demos, gamma)
    sums = returns(demos, log_probs(policy, demos), gamma)
    return -exact.negative_log_likelihood(policy, behavior), jnp.mean(sums)


def test_moments_of_demonstrations_give_their_mean_log_likelihood(quadratic, close):
    """Against the policy's own `log_prob` of every step, padding full of NaN.

    Fails without the discount, the mask or the division by the number of episodes.
    """
    rng = np.random.default_rng(1)
    mask = np.arange(5) < np.array([5, 3, 1, 4])[:, None]
    padded = lambda x: np.where(mask[:, :, None], x, np.nan)
    states = padded(rng.normal(size=(4, 5, 3)))
    demos = Trajectories(
        observations=jnp.asarray(np.concatenate([states, states[:, -1:]], axis=1)),
        actions=jnp.asarray(padded(rng.normal(size=(4, 5, 2)))),
        mask=jnp.asarray(mask),
        terminated=jnp.zeros(4, bool),
    )
    policy, gamma = expert_policy(quadratic), quadratic.problem.discount
    close(*mean_likelihoods(policy, demos, gamma), ROUNDING)


def test_only_linear_gaussian_policies_are_accepted(getkey):
    """No hidden layers, no biases, no squashing."""
    box = Box(2, -1.0, 1.0)
    make = lambda **options: mlp_policy(4, box, key=getkey(), **options)
    linear = {"hidden": (), "use_bias": False}
    for policy in (make(), make(hidden=()), make(**linear, squash=True)):
        with pytest.raises(ValueError, match="Exact answers need"):
            exact.gain_and_scale(policy)
    gain, scale = exact.gain_and_scale(make(**linear))
    assert gain.shape == (2, 4) and scale.shape == (2, 2)


@eqx.filter_jit
def return_and_floor(lqr, problem):
    reward = exact.true_reward(lqr)
    expert = exact.soft_optimal_policy(lqr, reward, problem)
    behavior = exact.moments(lqr, expert, 1.0, horizon=100)
    floor = exact.negative_log_likelihood(expert, behavior)
    return exact.expected_return(reward, behavior), floor


def test_the_papers_system_has_these_numbers():
    """Temperature 0.1, discount 0.99, 100 steps; the reference for every LQR run.

    Return and negative log-likelihood are undiscounted: EnvReturn of the soft-optimal
    policy and the floor of PolicyNLL, which is 100 times the entropy of an action.
    """
    problem = Problem(jnp.float64(0.1), jnp.float64(0.99))
    value, floor = return_and_floor(LQR(), problem)
    assert np.abs(value + 33.2175) < 1e-4
    assert np.abs(floor - 188.3914) < 1e-4
