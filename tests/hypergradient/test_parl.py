"""PARL's implicit gradient for demonstrations, against exact Hessians.

All episodes are enumerated, so the tolerances are numerical.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.hypergradient import PARL, Fisher, Raw
from hyperirl.hypergradient.parl import inner_hessian
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward

HORIZON = 3
REWARD = TableReward(jnp.array([[2.0, -0.1], [-0.4, 0.6]]))  # Far from uniform.
UNIFORM = softmax_table(jnp.zeros((2, 2)))


@eqx.filter_jit
def derivatives(mdp, problem, expert):
    """The Hessian, the outer gradient and the mixed derivative, exactly."""
    zero = jnp.zeros((2, 2))
    loss = lambda logits: exact.tabular.inner_loss(
        mdp, logits, REWARD.table, problem, horizon=HORIZON
    )
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    slope = jax.grad(exact.tabular.outer_loss)(zero, weights)
    cross = exact.tabular.cross_derivative(mdp, zero, problem, horizon=HORIZON)
    return jax.hessian(loss)(zero).reshape(4, 4), slope.reshape(-1), cross


def test_the_sampled_hessian_is_that_of_the_inner_loss(
    mdp, problem, everything, expert
):
    """Far from the optimum; fails without a discount, temperature, mask or product of
    scores, or if a reward does not wait for its actions."""
    product = inner_hessian(UNIFORM, REWARD, everything, problem)
    found = jax.jit(jax.vmap(product))(jnp.eye(4))
    order = np.arange(4).reshape(2, 2).T.ravel()  # Of parameters: action by action.
    expected = derivatives(mdp, problem, expert)[0][np.ix_(order, order)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_it_is_the_exact_hypergradient_at_the_optimum(
    ending, problem, complete_episodes
):
    """The oracle differentiates soft value iteration; no episode is cut."""
    reward = TableReward(jnp.full((3, 2), -jnp.log(2.0) * problem.temperature))
    expert = complete_episodes[::7]
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    expected = exact.tabular.hypergradient(ending, reward.table, problem, weights)
    args = softmax_table(jnp.zeros((3, 2))), reward, expert, complete_episodes, problem
    estimate = eqx.filter_jit(PARL(Raw(), damping=1e-9))(*args)
    np.testing.assert_allclose(estimate.h.table, expected, rtol=1e-6, atol=1e-8)
    info = estimate.diagnostics.solve
    assert info.relative_residual < 1e-6
    np.testing.assert_allclose(info.damping, 1e-9)


def test_elsewhere_it_has_the_hessian_and_not_the_fisher_matrix(
    mdp, problem, everything, expert
):
    """Even where that has a negative eigenvalue: the inverse is of least squares."""
    hessian, slope, cross = derivatives(mdp, problem, expert)
    assert np.linalg.eigvalsh(hessian)[0] < -0.01
    v = np.linalg.pinv(hessian, hermitian=True) @ slope
    expected = -(cross @ v).reshape(2, 2)
    args = UNIFORM, REWARD, expert, everything, problem
    found = eqx.filter_jit(PARL(Raw(), damping=1e-9))(*args).h.table
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    fisher = eqx.filter_jit(Fisher(Explicit(damping=1e-9), Raw()))(*args).h.table
    assert np.linalg.norm(found - fisher) > 0.1 * np.linalg.norm(fisher)


def test_damping_bounds_the_solution(mdp, problem, everything, expert):
    """`v = H g / (H^2 + damping^2)`, eigenvalue by eigenvalue."""
    damping, (hessian, slope, cross) = 0.3, derivatives(mdp, problem, expert)
    normal = hessian @ hessian + damping**2 * np.eye(4)
    expected = -(cross @ np.linalg.solve(normal, hessian @ slope)).reshape(2, 2)
    args = UNIFORM, REWARD, expert, everything, problem
    found = eqx.filter_jit(PARL(Raw(), damping=damping))(*args).h.table
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
