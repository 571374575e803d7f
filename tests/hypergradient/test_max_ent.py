"""Maximum causal entropy IRL with exact expectations, and where it differs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import LQR, CartPole
from hyperirl.hypergradient import MLIRL, Exact, MaxEnt
from hyperirl.policies import softmax_table
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import QuadraticReward, TableReward, mlp_reward
from hyperirl.rollout import rollout
from hyperirl.trajectories import pad

UNIFORM = softmax_table(jnp.zeros((2, 2)))


def gradients(mdp, reward, expert, problem):
    """By maximum entropy, and of the likelihood itself."""
    args = UNIFORM, reward, expert, expert, problem
    estimates = eqx.filter_jit(lambda: (MaxEnt(mdp)(*args), Exact(mdp)(*args)))()
    return [estimate.h for estimate in estimates]


def test_it_is_what_ml_irl_estimates(mdp, problem, everything, expert):
    """The uniform policy is optimal here, and the agent's episodes are all of its own.

    Fails without the temperature, the cut or the discount, or if agent and expert are
    exchanged.
    """
    reward = TableReward(jnp.full((2, 2), -jnp.log(2.0) * problem.temperature))
    args = UNIFORM, reward, expert, everything, problem
    expected = eqx.filter_jit(MLIRL())(*args).h.table
    estimate = eqx.filter_jit(MaxEnt(mdp))(*args)
    np.testing.assert_allclose(estimate.h.table, expected, atol=1e-12)
    assert estimate.diagnostics.snr == jnp.inf
    np.testing.assert_allclose(estimate.diagnostics.ml_irl_cosine, 1)


def test_it_is_the_hypergradient_if_the_dynamics_explain_the_demonstrations(
    ending, problem, complete_episodes
):
    """Of an expert that is not optimal: complete episodes, as often as they are likely.

    Room for more steps than the episodes have changes nothing.
    """
    reward = TableReward(jr.normal(jr.key(0), (3, 2), jnp.float64))
    for expert in (complete_episodes, pad(complete_episodes, 6)):
        found, expected = gradients(ending, reward, expert, problem)
        np.testing.assert_allclose(found.table, expected.table, atol=1e-12)


def test_else_it_differs_by_what_the_visits_lack(mdp, problem, expert):
    reward = TableReward(jr.normal(jr.key(0), (2, 2), jnp.float64))
    found, expected = gradients(mdp, reward, expert, problem)
    gamma, alpha, cut = problem.discount, problem.temperature, expert.num_steps
    logits = exact.tabular.soft_value_iteration(mdp, reward.table, problem).logits
    seen = exact.tabular.demo_weights(expert, gamma, 2)
    own = exact.tabular.occupancy(mdp, logits, gamma, horizon=cut)
    onward = lambda visits: jnp.einsum("sa,sat->t", visits, mdp.transitions)
    lack = lambda visits: mdp.initial + gamma * onward(visits) - visits.sum(axis=1)
    starting_in = lambda s: eqx.tree_at(lambda mdp: mdp.initial, mdp, jnp.eye(2)[s])
    later = [exact.tabular.occupancy(starting_in(s), logits, gamma) for s in range(2)]
    difference = jnp.tensordot(lack(seen) - lack(own), jnp.stack(later), 1) / alpha
    np.testing.assert_allclose(found.table - expected.table, difference, atol=1e-12)
    assert jnp.linalg.norm(difference) > 0.1 * jnp.linalg.norm(expected.table)


def test_any_reward_of_a_finite_mdp_will_do(mdp, problem, everything, expert):
    """The gradient of the table, pulled back to the parameters it is made of."""
    args = {"key": jr.key(0), "hidden": (3,), "dtype": jnp.float64}
    reward = mlp_reward(2, mdp.action_space, **args)
    values = exact.tabular.reward_table(mdp, reward)
    table = gradients(mdp, TableReward(values), expert, problem)[0].table
    found = gradients(mdp, reward, expert, problem)[0]
    inner = lambda reward: jnp.sum(table * exact.tabular.reward_table(mdp, reward))
    expected = eqx.filter_jit(eqx.filter_grad(inner))(reward)
    for leaf, like in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(leaf, like, atol=1e-12)


def test_on_lqr_it_is_the_mean_of_ml_irl():
    """Over rollouts of the soft-optimal policy, within their standard error."""
    lqr, problem = LQR(horizon=20), make_problem()
    root = lambda size: 0.7 * jnp.eye(size, dtype=jnp.float32)
    reward = QuadraticReward(root(4), root(2))
    policy = exact.lqr.soft_optimal_policy(lqr, reward, problem)
    flat = lambda h: jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(h)])

    @eqx.filter_jit
    def run(key):
        expert = rollout(lqr, policy, 4, key=key)

        def draw(key):
            agent = rollout(lqr, policy, 64, key=key)
            return flat(MLIRL()(policy, reward, expert, agent, problem).h)

        draws = jax.vmap(draw)(jr.split(jr.key(1), 16))
        args = policy, reward, expert, expert, problem
        return draws, flat(MaxEnt(lqr)(*args).h)

    draws, found = run(jr.key(0))
    error = np.std(draws, axis=0, ddof=1) / 4
    assert np.max(np.abs(np.mean(draws, axis=0) - found) / error) < 5
    assert np.linalg.norm(error) < 0.2 * np.linalg.norm(found)


def test_tasks_without_a_closed_form_are_refused():
    with pytest.raises(ValueError, match="has no closed form"):
        MaxEnt(CartPole())
