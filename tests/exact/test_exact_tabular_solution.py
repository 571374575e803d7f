"""Soft values, visits and losses of finite MDPs, against definitions and brute force.

Each docstring names changes to the code under which the test was seen to fail.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl.environments import Tabular, grid_world
from hyperirl.exact import tabular
from hyperirl.policies import softmax_table
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import TableReward, mlp_reward
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories, returns

ROUNDING = 1e-12

solve = jax.jit(tabular.soft_value_iteration)
value = jax.jit(tabular.policy_value)
inner_loss = jax.jit(tabular.inner_loss, static_argnames="horizon")
occupancy = jax.jit(tabular.occupancy, static_argnames="horizon")
gap = jax.jit(tabular.optimality_gap)
finite_solve = jax.jit(tabular.finite_soft_value_iteration, static_argnums=3)
enumerate_episodes = jax.jit(tabular.enumerate_episodes, static_argnums=2)


def test_soft_value_iteration_finds_the_fixed_point_of_the_bellman_equation(
    finite, close
):
    """The plain iteration, in NumPy, many times over.

    Fails without the discount or the temperature, or with `r` subtracted.
    """
    mdp, alpha = finite.mdp, float(finite.problem.temperature)
    transitions, reward = np.asarray(mdp.transitions), np.asarray(finite.reward)
    v = np.zeros(mdp.num_states)
    for _ in range(1000):
        q = reward + float(finite.problem.discount) * transitions @ v
        v = alpha * np.log(np.sum(np.exp(q / alpha), axis=1))
    solution = solve(mdp, finite.reward, finite.problem)
    close(solution.v, v, ROUNDING)
    close(solution.q, q, ROUNDING)
    close(jnp.exp(solution.logits), np.exp((q - v[:, None]) / alpha), ROUNDING)


def test_the_value_of_the_soft_optimal_policy_is_the_soft_optimal_value(finite, close):
    """Fails if `policy_value` drops the discount, the temperature or its sign."""
    solution = solve(finite.mdp, finite.reward, finite.problem)
    evaluated = value(finite.mdp, solution.logits, finite.reward, finite.problem)
    # Not the equation solved: that one is about the values before the last backup.
    close(evaluated, solution.v, ROUNDING)


def test_the_inner_loss_is_minus_the_soft_value_of_the_first_state(finite, close):
    """Forwards by visits, backwards by values.

    Fails without the discount, temperature or sign in either.
    """
    args = finite.mdp, finite.logits, finite.reward, finite.problem
    close(inner_loss(*args), -finite.mdp.initial @ value(*args), ROUNDING)


def test_the_gap_is_the_excess_inner_loss(finite, close):
    """`L - L* = alpha sum_s d_pi(s) KL(pi, pi*)`, also for a policy far away.

    Fails without the temperature, with the KL divergence reversed, or with the visits
    of the optimal policy.
    """
    args = finite.mdp, finite.logits, finite.reward, finite.problem
    best = solve(finite.mdp, finite.reward, finite.problem).logits
    excess = inner_loss(*args) - inner_loss(finite.mdp, best, *args[2:])
    close(gap(*args), excess, 1e-11)
    assert jnp.abs(gap(finite.mdp, best, *args[2:])) < ROUNDING


def test_low_temperatures_and_long_horizons_are_solved_too(close):
    """Newton's steps do not depend on the discount; here it is 0.999, and 1e-3 hot.

    Fails if there are no Newton steps but the two that are differentiated.
    """
    mdp = grid_world(dtype=jnp.float64)
    hard = make_problem(1e-3, 0.999)
    solution = solve(mdp, mdp.rewards, hard)
    close(value(mdp, solution.logits, mdp.rewards, hard), solution.v, 1e-10)


def test_a_finite_horizon_becomes_infinite(finite, close):
    """Fails if the finite backup drops the discount or the temperature."""
    args = finite.mdp, finite.reward, finite.problem
    steps = finite_solve(*args, 800)
    close(jax.tree.map(lambda leaf: leaf[0], steps), solve(*args), ROUNDING)


@eqx.filter_jit
def enumerated_soft_return(tiny, logits, horizon):
    episodes, probabilities = tabular.enumerate_episodes(tiny.mdp, logits, horizon)
    states = jnp.argmax(episodes.observations[:, :-1], axis=-1)
    time = jnp.arange(horizon)[None, :]
    log_pi = jax.nn.log_softmax(logits)[time, states, episodes.actions]
    reward = tiny.reward[states, episodes.actions]
    soft = reward - tiny.problem.temperature * log_pi
    return probabilities @ returns(episodes, soft, tiny.problem.discount)


def test_no_policy_beats_finite_soft_value_iteration(tiny, close):
    """The soft return over all episodes is its value, and its gradient is zero there.

    Fails if the backup drops the discount or the temperature, or runs forward in time.
    """
    solution = finite_solve(tiny.mdp, tiny.reward, tiny.problem, 3)
    objective = lambda logits: enumerated_soft_return(tiny, logits, 3)
    close(objective(solution.logits), tiny.mdp.initial @ solution.v[0], ROUNDING)
    assert jnp.max(jnp.abs(jax.grad(objective)(solution.logits))) < ROUNDING


def test_visits_are_those_of_all_episodes(tiny, close):
    """Fails without the discount, or with transitions transposed."""
    args = tiny.mdp, tiny.logits
    episodes, probabilities = enumerate_episodes(*args, 4)
    weighted = jax.vmap(
        lambda episode: tabular.demo_weights(
            jax.tree.map(lambda leaf: leaf[None], episode), tiny.problem.discount, 2
        )
    )(episodes)
    expected = jnp.tensordot(probabilities, weighted, axes=1)
    close(occupancy(*args, tiny.problem.discount, horizon=4), expected, ROUNDING)


def test_infinite_visits_are_the_limit_of_finite_ones(finite, close):
    """Fails without the discount, or with transitions transposed, in either."""
    args = finite.mdp, finite.logits, finite.problem.discount
    close(occupancy(*args), occupancy(*args, horizon=1000), ROUNDING)


def test_all_episodes_make_up_the_whole_probability(tiny, close):
    """Fails if episodes that terminate are left out, or end with the wrong chance."""
    episodes, probabilities = enumerate_episodes(tiny.mdp, tiny.logits, 4)
    assert jnp.all(probabilities >= 0)
    close(jnp.sum(probabilities), jnp.float64(1), ROUNDING)
    stop = 1 - jnp.sum(tiny.mdp.transitions[0, 0])
    ended = jnp.sum(jnp.where(episodes.terminated, probabilities, 0.0))
    # Every action ends the task with the same chance.
    assert jnp.abs(ended - (1 - (1 - stop) ** 4)) < ROUNDING


def test_listed_episodes_look_like_rollouts(tiny, getkey):
    """Each rollout is in the list once, terminated or cut alike, padding included.

    Fails if the last state of a terminated episode moves on, or the mask is off by one.
    """
    episodes, _ = enumerate_episodes(tiny.mdp, tiny.logits, 3)
    policy = softmax_table(tiny.logits)
    rolled = rollout(tiny.mdp, policy, 100, key=getkey(), horizon=3)

    def rows(batch: Trajectories) -> list[tuple]:
        actions = np.where(batch.mask, batch.actions, 0)
        states = np.argmax(batch.observations, axis=-1)
        parts = states, actions, batch.mask, batch.terminated[:, None], batch.rewards
        return [tuple(row) for row in np.concatenate(parts, axis=1)]

    listed = rows(episodes)
    assert len(set(listed)) == len(listed) == 4 + 4**2 + 4**3 * 3
    assert set(rows(rolled)) <= set(listed)


def test_too_many_episodes_are_refused():
    mdp = grid_world()
    with pytest.raises(ValueError, match="shorter horizon"):
        tabular.enumerate_episodes(mdp, mdp.rewards, 3)


def test_demonstrations_become_a_table_of_discounted_visits():
    """Counted by hand: gamma = 1/2, two episodes, one of which ends after one step.

    Fails without the discount, the division by the number of episodes or the mask.
    """
    states = jax.nn.one_hot(jnp.array([[0, 1, 0], [1, 0, 0]]), 2)
    demos = Trajectories(
        observations=states.at[1, 1:].set(jnp.nan),
        actions=jnp.array([[1, 0], [1, 1]]),
        mask=jnp.array([[True, True], [True, False]]),
        terminated=jnp.array([False, True]),
    )
    expected = jnp.array([[0.0, 0.5], [0.25, 0.5]])
    table = tabular.demo_weights(demos, 0.5, 2)
    assert jnp.array_equal(table, expected.astype(jnp.float64))


def test_single_precision_environments_get_double_precision_answers(close):
    """A row that sums to 1 up to rounding does not terminate.

    Fails if rows are not brought to sum to 1: the total is then off by 1e-6 or so.
    """
    mdp = grid_world()
    mdp = eqx.tree_at(lambda m: m.transitions, mdp, mdp.transitions.at[-1].set(0.04))
    prob = make_problem(0.1, 0.99)
    assert mdp.transitions.dtype == jnp.float32
    total = jnp.sum(occupancy(mdp, mdp.rewards, prob.discount))
    close(total, 1 / (1 - prob.discount.astype(jnp.float64)), ROUNDING)
    policy = jax.jit(tabular.soft_optimal_policy)(mdp, TableReward(mdp.rewards), prob)
    distribution = policy.distribution(mdp.observe(jnp.int32(0)))
    assert distribution.logits.dtype == jnp.float32


def test_any_reward_function_can_be_tabulated(getkey):
    """Fails if states and actions are swapped."""
    mdp = grid_world(2, 2)
    reward = mlp_reward(4, mdp.action_space, key=getkey())
    table = tabular.reward_table(mdp, reward)
    expected = reward(mdp.observe(jnp.int32(2)), jnp.int32(1))
    assert table.shape == (4, 4)
    assert jnp.allclose(table[2, 1], expected, rtol=1e-6)


def test_termination_takes_away_all_later_value(close):
    """One state, two actions: one goes on, the other ends the task half the time.

    `v = alpha log(exp((r0 + gamma v) / alpha) + exp((r1 + gamma v / 2) / alpha))`. With
    `alpha = 1`, `gamma = 1/2`, `r0 = 0` and `r1 = log 6` that is `x = x^(1/2) + 6
    x^(1/4)` for `x = exp(v)`, so `v = log 16`.
    Fails if rows that sum to less than 1 are brought to sum to 1.
    """
    mdp = Tabular(
        transitions=jnp.array([[[1.0], [0.5]]]),
        rewards=jnp.array([[0.0, jnp.log(6.0)]]),
        initial=jnp.ones(1),
    )
    solution = solve(mdp, mdp.rewards, make_problem(1.0, 0.5))
    close(solution.v, jnp.log(jnp.array([16.0])), ROUNDING)
