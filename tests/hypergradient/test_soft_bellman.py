"""The hypergradient without a Fisher solve, against exact answers.

The critic's features are as rich as the problem and every expectation over a next state
is exact, so the tolerances are numerical. Which states and actions the agent visits
does not matter then, as long as it visits them all.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from hyperirl import exact
from hyperirl.curvature import Explicit
from hyperirl.environments import LQR
from hyperirl.hypergradient import Fisher, SoftBellman
from hyperirl.hypergradient.estimate import cosine
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.policies import AbstractPolicy, Categorical, softmax_table
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import QuadraticReward, TableReward
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories

REWARD = TableReward(jnp.array([[0.3, -0.1], [-0.4, 0.6]]))


@pytest.fixture(scope="module")
def soft_bellman(features) -> SoftBellman:
    return SoftBellman(features, ridge=1e-13)


@eqx.filter_jit
def optimal(mdp, problem):
    values = exact.tabular.soft_value_iteration(mdp, REWARD.table, problem)
    return softmax_table(values.logits)


@eqx.filter_jit
def truth(mdp, problem, expert, reward=REWARD):
    """By autodiff through soft value iteration over an infinite horizon."""
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    return exact.tabular.hypergradient(mdp, reward.table, problem, weights)


def test_it_is_the_exact_hypergradient_of_a_finite_mdp(
    mdp, problem, everything, expert, soft_bellman
):
    """Fails with a wrong sign, or without a discount, temperature, mask or transpose.

    The agent's episodes are cut after three steps, and some end before.
    """
    h = eqx.filter_jit(soft_bellman)(
        optimal(mdp, problem), REWARD, expert, everything, problem
    ).h
    np.testing.assert_allclose(h.table, truth(mdp, problem, expert), atol=1e-9)


def test_demonstrations_of_different_lengths_are_read_up_to_their_end(
    mdp, problem, everything, expert, soft_bellman
):
    """Whatever is in the padding; its weights are those of the exact loss."""
    mask = jnp.arange(3)[None, :] < jnp.array([1, 2, 3, 2, 1])[:, None]
    times = jnp.concatenate([mask, jnp.zeros((5, 1), bool)], axis=1)
    blank = jnp.where(times[:, :, None], expert.observations, jnp.nan)
    short = eqx.tree_at(lambda e: (e.mask, e.observations), expert, (mask, blank))
    h = eqx.filter_jit(soft_bellman)(
        optimal(mdp, problem), REWARD, short, everything, problem
    ).h
    np.testing.assert_allclose(h.table, truth(mdp, problem, short), atol=1e-9)


def test_for_a_table_it_is_the_fisher_form_at_any_policy(
    problem, everything, expert, adjoint, soft_bellman
):
    """Far from the inner optimum too: both have the same critic and forget the same."""
    policy = softmax_table(jnp.array([[0.2, -0.9], [1.1, 0.4]]))
    args = policy, REWARD, expert, everything, problem
    fisher = Fisher(Explicit(damping=1e-11), adjoint, expected=True)
    expected = eqx.filter_jit(fisher)(*args)
    found = eqx.filter_jit(soft_bellman)(*args)
    np.testing.assert_allclose(found.h.table, expected.h.table, rtol=1e-6, atol=1e-8)
    angle = eqx.filter_jit(soft_bellman.cosine)(expected.h, *args)
    np.testing.assert_allclose(angle, 1, atol=1e-9)
    same = expected.diagnostics.ml_irl_cosine
    np.testing.assert_allclose(found.diagnostics.ml_irl_cosine, same, rtol=1e-6)
    assert found.diagnostics.solve is None


class Tied(AbstractPolicy):
    """Chooses the second action with the same chance in all states."""

    logit: Float[Array, ""]

    def distribution(self, observation):
        return Categorical(jnp.stack([jnp.zeros_like(self.logit), self.logit]))


def test_it_takes_a_restricted_policy_for_a_free_one(
    stationary, stationary_agent, problem, expert, adjoint, soft_bellman
):
    """Here the class holds the inner optimum, the uniform policy, but not its moves.

    The Fisher form is the derivative of the likelihood of what the class can do;
    soft-Bellman that of a table's. The states of the agent are those of an infinite
    episode, since they are stationary from the start.
    """
    weights = exact.tabular.demo_weights(expert, problem.discount, 2)
    reward = TableReward(jnp.zeros((2, 2)))

    def table(logit):
        return jnp.tile(jnp.stack([jnp.zeros_like(logit), logit]), (2, 1))

    @jax.jit
    def restricted():
        """By the implicit function theorem in the one parameter."""
        inner = lambda logit, r: exact.tabular.inner_loss(
            stationary, table(logit), r, problem
        )
        outer = lambda logit: exact.tabular.outer_loss(table(logit), weights)
        zero = jnp.zeros(())
        curvature = jax.grad(jax.grad(inner))(zero, reward.table)
        cross = jax.jacobian(jax.grad(inner), argnums=1)(zero, reward.table)
        return -cross * jax.grad(outer)(zero) / curvature

    args = Tied(jnp.zeros(())), reward, expert, stationary_agent, problem
    fisher = Fisher(Explicit(damping=1e-11), adjoint)
    projected = eqx.filter_jit(fisher)(*args).h
    free = eqx.filter_jit(soft_bellman)(*args).h
    np.testing.assert_allclose(projected.table, restricted(), atol=1e-8)
    unrestricted = truth(stationary, problem, expert, reward)
    np.testing.assert_allclose(free.table, unrestricted, atol=1e-9)
    angle = eqx.filter_jit(soft_bellman.cosine)(projected, *args)
    np.testing.assert_allclose(angle, cosine(free, projected), rtol=1e-9)
    assert abs(angle) < 0.9


@pytest.fixture(scope="module")
def regulator():
    """The paper's LQR in `float64`: a reward, its exact policy, and demonstrations."""
    double = lambda tree: jax.tree.map(
        lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x, tree
    )
    lqr, problem = double(LQR()), double(make_problem())
    root = lambda size: 0.7 * jnp.eye(size)
    reward = QuadraticReward(root(4), root(2))
    solve = eqx.filter_jit(exact.lqr.soft_optimal_policy)
    expert = rollout(
        lqr, solve(lqr, exact.lqr.true_reward(lqr), problem), 32, key=jr.key(0)
    )
    return lqr, problem, reward, solve(lqr, reward, problem), expert


@eqx.filter_jit
def lqr_truth(lqr, problem, reward, expert):
    seen = exact.lqr.demo_moments(expert, problem.discount)
    return exact.lqr.hypergradient(lqr, reward, problem, seen)


def quadratic_features(lqr, agent):
    return random_features(
        input_normalizer(agent),
        lqr.action_space,
        key=jr.key(1),
        num_units=0,
        dtype=jnp.float64,
    )


def test_it_is_the_exact_hypergradient_of_lqr(regulator):
    """Monomials of degree two hold the critic; noise comes as its sigma points."""
    lqr, problem, reward, policy, expert = regulator
    state_key, action_key = jr.split(jr.key(5))
    states = jr.normal(state_key, (64, 4), jnp.float64)
    actions = jr.normal(action_key, (64, 2), jnp.float64)
    axes = 2 * jnp.concatenate([jnp.eye(4), -jnp.eye(4)])  # Mean 0, covariance I.
    noise = axes @ lqr.noise_root.T
    following = (states @ lqr.A.T + actions @ lqr.B.T)[:, None, :] + noise[None, :, :]
    every = lambda x: jnp.repeat(x, len(axes), axis=0)
    agent = Trajectories(
        observations=jnp.stack([every(states), following.reshape(-1, 4)], axis=1),
        actions=every(actions)[:, None, :],
        mask=jnp.ones((512, 1), bool),
        terminated=jnp.zeros(512, bool),
    )
    soft_bellman = SoftBellman(quadratic_features(lqr, agent), ridge=1e-14)
    args = policy, reward, expert, agent, problem
    h = eqx.filter_jit(soft_bellman.gradient)(*args)
    expected = lqr_truth(lqr, problem, reward, expert)
    for found, exactly in zip(*map(jax.tree.leaves, (h, expected)), strict=True):
        size = np.max(np.abs(exactly))
        np.testing.assert_allclose(found, exactly, atol=1e-7 * size)


@pytest.mark.slow
def test_64_trajectories_of_lqr_are_enough_for_a_cosine_of_098(regulator):
    lqr, problem, reward, policy, expert = regulator
    expected = lqr_truth(lqr, problem, reward, expert)
    found = []
    for key in jr.split(jr.key(2), 4):
        agent = rollout(lqr, policy, 64, key=key)
        soft_bellman = SoftBellman(quadratic_features(lqr, agent))
        args = policy, reward, expert, agent, problem
        estimate = eqx.filter_jit(soft_bellman)(*args)
        found.append(float(cosine(estimate.h, expected)))
        assert estimate.diagnostics.snr > 1
    assert np.mean(found) > 0.98
