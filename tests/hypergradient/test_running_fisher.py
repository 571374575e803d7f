"""A Fisher matrix kept by rank-one updates, and what it tends to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.hypergradient import Fisher, RunningFisher
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward
from hyperirl.scores import episode_rows

DAMPING = 0.05
REWARD = TableReward(jnp.array([[0.3, -0.1], [-0.4, 0.6]]))
UNIFORM = softmax_table(jnp.zeros((2, 2)))
update = eqx.filter_jit(RunningFisher.update)
rows_of = eqx.filter_jit(episode_rows)


@pytest.fixture(scope="module")
def batches(everything):
    """All episodes, dealt into 16 batches that are not alike."""
    return [everything[64 * i : 64 * (i + 1)] for i in range(16)]


def run(estimator, policy, batches, expert, problem):
    """The estimate of the last step, and the memory after it."""
    state = estimator.init(REWARD, policy)
    for batch in batches:
        args = policy, REWARD, expert, batch, problem
        estimate, state = update(estimator, state, *args)
    return estimate, state


def test_rows_of_episodes_have_the_squares_of_the_fisher_matrix(
    mdp, problem, everything
):
    """In the mean over all episodes; fails without the temperature or the root of the
    discount, or if steps after the end count."""
    rows = rows_of(UNIFORM, everything, problem)
    fisher = exact.tabular.fisher(mdp, jnp.zeros((2, 2)), problem, horizon=3)
    order = np.arange(4).reshape(2, 2).T.ravel()  # Of parameters: action by action.
    expected = problem.temperature * fisher[np.ix_(order, order)]
    np.testing.assert_allclose(rows.T @ rows, expected, atol=1e-12)


def test_with_nothing_forgotten_it_tends_to_the_damped_fisher_solve(
    problem, everything, batches, expert, adjoint
):
    """At a policy that stays, the mean over the batches is that of all episodes.

    The last step sees all of them again, so that its cross product is exact too.
    """
    estimator = RunningFisher(adjoint, damping=DAMPING, forget=1.0)
    seen = [*batches, everything]
    found, state = run(estimator, UNIFORM, seen, expert, problem)
    fisher = Fisher(Explicit(damping=DAMPING), adjoint)
    args = UNIFORM, REWARD, expert, everything, problem
    expected = eqx.filter_jit(fisher)(*args)
    np.testing.assert_allclose(found.h.table, expected.h.table, atol=1e-9)
    np.testing.assert_allclose(state.weight, 17)
    info = found.diagnostics.solve
    np.testing.assert_allclose(info.damping, DAMPING)
    assert info.relative_residual < 1e-12 and info.certificate < 1e-10


def test_older_steps_fade(problem, batches, expert, adjoint):
    """The weights are powers of `forget`, and they sum to one from the first step."""
    estimator = RunningFisher(adjoint, damping=DAMPING, forget=0.5)
    first = run(estimator, UNIFORM, batches[:1], expert, problem)[1]
    last = run(estimator, UNIFORM, batches[:3], expert, problem)[1]
    squares = [
        rows.T @ rows for rows in (rows_of(UNIFORM, b, problem) for b in batches[:3])
    ]
    np.testing.assert_allclose(first.mean, squares[0], atol=1e-12)
    expected = np.tensordot([1 / 7, 2 / 7, 4 / 7], squares, axes=1)
    np.testing.assert_allclose(last.mean, expected, atol=1e-12)
    assert np.max(np.abs(squares[0] - squares[2])) > 0.01


def test_it_is_solved_with_what_is_remembered(problem, batches, expert, adjoint):
    """And not with the rows of the last batch alone."""
    estimator = RunningFisher(adjoint, damping=DAMPING, forget=0.9)
    alone = run(estimator, UNIFORM, batches[-1:], expert, problem)[0]
    after = run(estimator, UNIFORM, batches, expert, problem)[0]
    assert np.max(np.abs(alone.h.table - after.h.table)) > 1e-3


def test_the_memory_keeps_its_shapes_and_types(problem, batches, expert, adjoint):
    """It goes into checkpoints and through compiled loops."""
    single = softmax_table(jnp.zeros((2, 2), jnp.float32))
    shapes = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    for policy in (UNIFORM, single):
        state = RunningFisher(adjoint).init(REWARD, policy)
        after = jax.eval_shape(
            lambda s: s.add(jnp.zeros((4, 4), s.mean.dtype), jnp.asarray(0.9)), state
        )
        assert shapes(after) == shapes(state)


def test_what_cannot_be_kept_is_refused(adjoint):
    with pytest.raises(ValueError, match="got 1.5; choose a share above 0 and up to 1"):
        RunningFisher(adjoint, forget=1.5)
    large = softmax_table(jnp.zeros((101, 100)))
    with pytest.raises(ValueError, match="of 10,100 parameters .*method=fisher"):
        RunningFisher(adjoint).init(REWARD, large)
