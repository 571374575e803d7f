"""The penalty method and its limit, on a finite MDP in `float64`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.hypergradient import Fisher, Penalty
from hyperirl.hypergradient.penalty import descend
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward

REWARD = TableReward(jnp.array([[0.1, 0.0], [-0.1, 0.1]]))


def newton(loss, logits):
    """The minimum of a loss of logits, which constants do not change."""

    def step(logits, _):
        flat = lambda x: x.reshape(4)
        hessian = jax.hessian(loss)(logits).reshape(4, 4)
        inverse = jnp.linalg.pinv(hessian, hermitian=True)
        return logits - (inverse @ flat(jax.grad(loss)(logits))).reshape(2, 2), None

    return jax.lax.scan(step, logits, length=20)[0]


@eqx.filter_jit
def setting(mdp, problem, expert):
    """The inner optimum, the expert's weights, and the exact hypergradient."""
    logits = exact.tabular.soft_value_iteration(mdp, REWARD.table, problem).logits
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    return (
        logits,
        weights,
        exact.tabular.hypergradient(mdp, REWARD.table, problem, weights),
    )


@eqx.filter_jit
def penalized(mdp, problem, logits, weights, strength):
    """`strength (E_pi* - E_theta)`, with nothing approximated."""

    def loss(logits):
        gap = exact.tabular.optimality_gap(mdp, logits, REWARD.table, problem)
        return exact.tabular.outer_loss(logits, weights) / strength + gap

    visits = lambda x: exact.tabular.occupancy(mdp, x, problem.discount)
    return strength * (visits(logits) - visits(newton(loss, logits)))


def estimator(features, strength, damping=1e-12):
    return Penalty(
        features, damping=damping, strength=strength, ridge=1e-13, num_steps=80
    )


def test_the_penalty_tends_to_the_hypergradient(mdp, problem, expert):
    """With an error that halves as the strength doubles."""
    logits, weights, truth = setting(mdp, problem, expert)
    error = [
        np.linalg.norm(penalized(mdp, problem, logits, weights, strength) - truth)
        for strength in (1e3, 2e3, 4e3)
    ]
    assert error[0] < 0.02 * np.linalg.norm(truth)
    np.testing.assert_allclose(error[0] / error[1], 2, rtol=0.01)
    np.testing.assert_allclose(error[1] / error[2], 2, rtol=0.01)


def test_the_estimate_tends_to_the_hypergradient(
    mdp, problem, everything, expert, features
):
    """Fails with a wrong sign, temperature, discount, or policies exchanged."""
    logits, _, truth = setting(mdp, problem, expert)
    args = softmax_table(logits), REWARD, expert, everything, problem
    found = [
        eqx.filter_jit(estimator(features, strength))(*args).h.table
        for strength in (1e3, 1e4)
    ]
    error = [np.linalg.norm(h - truth) for h in found]
    assert error[1] < 2e-3 * np.linalg.norm(truth)
    np.testing.assert_allclose(error[0] / error[1], 10, rtol=0.05)


def test_a_finite_strength_is_that_of_the_loss_on_the_agents_states(
    mdp, problem, everything, expert, features
):
    """The same by tables: `strength sum_s d(s) E_a [(pi* - theta) Psi(s, a)]`."""
    strength, (logits, weights, truth) = 30.0, setting(mdp, problem, expert)
    own = exact.tabular.demo_weights(everything, problem.discount, 2).sum(axis=1)
    log_pi = jax.nn.log_softmax(logits)

    @jax.jit
    def expected():
        def loss(x):
            new = jax.nn.log_softmax(x)
            apart = jnp.sum(jnp.exp(new) * (new - log_pi), axis=1)
            gap = problem.temperature * jnp.sum(own * apart)
            return exact.tabular.outer_loss(x, weights) + strength * gap

        theta = newton(loss, logits)
        off = jnp.exp(log_pi) - jax.nn.softmax(theta)
        moves = jnp.einsum("sat,tb->satb", mdp.transitions, jnp.exp(log_pi))
        moves = moves.reshape(4, 4)
        later = jnp.linalg.inv(jnp.eye(4) - problem.discount * moves)
        return strength * ((own[:, None] * off).reshape(-1) @ later).reshape(2, 2)

    args = softmax_table(logits), REWARD, expert, everything, problem
    found = eqx.filter_jit(estimator(features, strength))(*args).h.table
    np.testing.assert_allclose(found, expected(), atol=1e-8)
    assert np.linalg.norm(found - truth) > 0.1 * np.linalg.norm(truth)


def test_damping_is_that_of_the_fisher_form(problem, everything, expert, adjoint):
    """At any policy, in the limit; relative to the same trace."""
    policy = softmax_table(jnp.array([[0.2, -0.9], [1.1, 0.4]]))
    args = policy, REWARD, expert, everything, problem
    penalty = estimator(adjoint.features, 1e5, damping=0.1)
    fisher = Fisher(Explicit(damping=0.1), adjoint, expected=True)
    expected = eqx.filter_jit(fisher)(*args).h.table
    found = eqx.filter_jit(penalty)(*args).h.table
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_it_goes_on_where_the_last_step_ended(
    mdp, problem, everything, expert, features
):
    """Ten steps of three updates are not those of three steps from nothing."""
    logits, _, _ = setting(mdp, problem, expert)
    args = softmax_table(logits), REWARD, expert, everything, problem
    short = Penalty(features, damping=1e-12, ridge=1e-13, num_steps=2)
    long = Penalty(features, damping=1e-12, ridge=1e-13, num_steps=80)
    expected = eqx.filter_jit(long)(*args).h.table
    state, update = short.init(REWARD, args[0]), eqx.filter_jit(Penalty.update)
    errors = []
    for _ in range(8):
        estimate, state = update(short, state, *args)
        errors.append(np.linalg.norm(estimate.h.table - expected))
    assert errors[-1] < 0.01 * errors[0]


def test_descent_finds_the_minimum_of_an_ill_conditioned_quadratic():
    """And never returns a point that is worse than its start."""
    values = jnp.array([1e3, 30.0, 1.0, 0.1])
    gradient = lambda x: values * x - jnp.array([1.0, -2.0, 3.0, 0.5])
    found = jax.jit(lambda x: descend(gradient, x, 200))(jnp.zeros(4))
    np.testing.assert_allclose(gradient(found), 0, atol=1e-8)
    poor = jax.jit(lambda x: descend(gradient, x, 3))(found)
    assert jnp.linalg.norm(gradient(poor)) <= jnp.linalg.norm(gradient(found))


@pytest.mark.parametrize("strength", [0.0, -1.0, jnp.inf])
def test_strengths_that_mean_nothing_are_refused(features, strength):
    with pytest.raises(ValueError, match="`strength` must be positive and finite"):
        Penalty(features, strength=strength)
