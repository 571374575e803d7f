"""Every solver reaches the exact soft-optimal policy, and says so."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from inner_problems import (
    MDP,
    PPO_SOLVER,
    PROBLEM,
    REINFORCE_SOLVER,
    REWARD,
    SAC_SOLVER,
    SOMEHOW,
    TRACES,
    UNIFORM,
    logits,
    worst_kl,
)

from hyperirl import exact
from hyperirl.environments import LQR, CartPole, OtherStarts
from hyperirl.inner import (
    PPO,
    Exact,
    SolveReport,
    policy_for,
    solve_until,
    train,
    true_reward,
)
from hyperirl.inner.budgets import SolveBudget
from hyperirl.policies import linear_gaussian, mlp_policy
from hyperirl.problem import Problem, problem
from hyperirl.tasks import make

# Solver, updates, and a bound on the KL to the soft-optimal policy in the worst state.
SAMPLING = {
    "ppo": (PPO_SOLVER, 60, 0.02),  # 123,000 steps.
    "sac": (SAC_SOLVER, 1500, 0.02),  # 26,000 steps.
    "reinforce": (REINFORCE_SOLVER, 200, 0.02),  # 450,000 steps.
}
sampling = pytest.mark.parametrize("name", SAMPLING)


def solve(solver, updates, *, seed, policy=UNIFORM, reward=REWARD, problem=PROBLEM):
    state_key, key = jr.split(jr.key(seed))
    state = solver.init(MDP, policy, key=state_key)
    return solver.solve(MDP, reward, state, problem, updates, key=key)


@sampling
@pytest.mark.parametrize("seed", [0, 1])
def test_sampling_solvers_reach_the_soft_optimal_policy(name, seed):
    solver, updates, bound = SAMPLING[name]
    state, report = solve(solver, updates, seed=seed)
    assert worst_kl(logits(state.policy)) < bound
    # The uniform policy is far away, so that this is an achievement.
    assert worst_kl(logits(UNIFORM)) > 50 * bound
    # The report knows: its gap is exact, its numbers those of the policy.
    gap = exact.tabular.optimality_gap(MDP, logits(state.policy), MDP.rewards, PROBLEM)
    np.testing.assert_allclose(report.gap, gap, rtol=1e-3, atol=1e-6)
    value = -exact.tabular.inner_loss(MDP, logits(state.policy), MDP.rewards, PROBLEM)
    np.testing.assert_allclose(report.soft_return, value, rtol=0.15)
    # Its gradient is the exact one but for noise, whose energy is what debiasing takes.
    exact_norm = float(gradient_norm(logits(state.policy)))
    noise = float(report.gradient_norm) ** 2 - float(report.gradient_norm_squared)
    error = abs(float(report.gradient_norm_squared) - exact_norm**2)
    assert error < 5 * noise + 10 * exact_norm * noise**0.5
    assert exact_norm < 0.1 * gradient_norm(logits(UNIFORM))
    assert report.kl < 1e-3


@jax.jit
def gradient_norm(table):
    loss = lambda x: exact.tabular.inner_loss(MDP, x, MDP.rewards, PROBLEM)
    return jnp.linalg.norm(jax.grad(loss)(table.astype(jnp.float64)))


@sampling
def test_a_solve_can_be_interrupted_and_resumed(name):
    """State goes through plain arrays and back; what follows is the same to the bit."""
    solver = SAMPLING[name][0]
    first, _ = solve(solver, 2, seed=0)
    leaves, structure = jax.tree.flatten(first)
    restored = jax.tree.unflatten(structure, [jnp.asarray(np.array(x)) for x in leaves])
    results = [
        solver.solve(MDP, REWARD, state, PROBLEM, 3, key=jr.key(7))
        for state in (first, restored)
    ]
    assert eqx.tree_equal(*results)
    changed = not np.array_equal(logits(results[0][0].policy), logits(first.policy))
    assert changed


@sampling
def test_changing_numbers_compiles_nothing(name):
    solver = SAMPLING[name][0]
    state, _ = solve(solver, 1, seed=0)
    before = len(TRACES)
    assert before > 0
    faster = eqx.tree_at(lambda s: s.learning_rate, solver, jnp.float32(0.1))
    doubled = eqx.tree_at(lambda r: r.table.table, REWARD, 2 * MDP.rewards)
    _, report = faster.solve(MDP, doubled, state, problem(0.3, 0.8), 2, key=jr.key(2))
    assert len(TRACES) == before
    assert report.steps > 0


@sampling
def test_the_temperature_and_the_reward_are_the_problems_own(name):
    """Another temperature has another answer, which the solver finds as well."""
    solver, updates, _ = SAMPLING[name]
    hot = Problem(jnp.float32(4.0), PROBLEM.discount)
    state, _ = solve(solver, updates, seed=3, problem=hot)
    best = exact.tabular.soft_value_iteration(MDP, MDP.rewards, hot).logits
    found = jax.nn.softmax(logits(state.policy))
    np.testing.assert_allclose(found, jnp.exp(best), atol=0.08)
    cold = exact.tabular.soft_value_iteration(MDP, MDP.rewards, PROBLEM).logits
    assert jnp.max(jnp.abs(jnp.exp(cold) - jnp.exp(best))) > 0.3


def test_soft_value_iteration_is_exact_after_one_update():
    state, report = solve(Exact(), 1, seed=0, policy=SOMEHOW)
    assert worst_kl(logits(state.policy)) < 1e-10
    assert report.gap < 1e-6 and report.gradient_norm < 1e-4
    unmoved, before = solve(Exact(), 0, seed=0, policy=SOMEHOW)
    np.testing.assert_array_equal(logits(unmoved.policy), logits(SOMEHOW))
    assert before.gap > 0.1 and before.soft_return < report.soft_return
    gap = report.soft_return - before.soft_return
    np.testing.assert_allclose(before.gap, gap, rtol=1e-4)


def test_soft_riccati_is_exact_after_one_update():
    lqr = LQR()
    start = linear_gaussian(
        jnp.full((2, 4), 0.7, jnp.float32), jnp.eye(2, dtype=jnp.float32)
    )
    state = Exact().init(lqr, start, key=jr.key(0))
    call = lambda n: Exact().solve(
        lqr, true_reward(lqr), state, problem(), n, key=jr.key(0)
    )
    solved, report = call(1)
    _, before = call(0)
    best = exact.lqr.soft_optimal_policy(lqr, true_reward(lqr), problem())
    for ours, theirs in zip(
        jax.tree.leaves(solved.policy), jax.tree.leaves(best), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert report.gap < 1e-6 < 0.1 < before.gap
    gap = report.soft_return - before.soft_return
    np.testing.assert_allclose(before.gap, gap, rtol=1e-3)


def test_exact_solvers_refuse_what_they_cannot_solve():
    init = lambda environment, policy: Exact().init(environment, policy, key=jr.key(0))
    network = mlp_policy(4, MDP.action_space, key=jr.key(0), hidden=(4,))
    with pytest.raises(ValueError, match="place of a softmax table"):
        init(MDP, network)
    with pytest.raises(ValueError, match="This CartPole has no closed form"):
        init(CartPole(), UNIFORM)
    diagonal = mlp_policy(4, LQR().action_space, key=jr.key(0), hidden=())
    with pytest.raises(ValueError, match="place of a linear-Gaussian policy"):
        init(LQR(), diagonal)
    state = init(LQR(), Exact().required_policy(LQR()))
    with pytest.raises(ValueError, match="for quadratic rewards, got reward"):
        Exact().solve(LQR(), LQR().reward, state, problem(), 1, key=jr.key(0))


def test_solve_until_keeps_its_budgets():
    state = PPO_SOLVER.init(MDP, UNIFORM, key=jr.key(0))
    run = lambda budget, **options: solve_until(
        PPO_SOLVER, MDP, REWARD, state, PROBLEM, budget, key=jr.key(1), **options
    )[1]
    per_update = PPO_SOLVER.steps_per_update
    assert (
        run(SolveBudget(steps=7 * per_update), updates_per_call=3).steps
        == 7 * per_update
    )
    assert run(SolveBudget(seconds=1e-3), updates_per_call=1).steps == per_update
    calls = []
    done = run(
        SolveBudget(steps=10**9, tolerance=0.3),
        updates_per_call=2,
        callback=lambda state, progress: calls.append(progress.report.gap),
    )
    assert done.report.gap < 0.3 <= min(calls[:-1])
    with pytest.raises(ValueError, match="never end"):
        SolveBudget()
    with pytest.raises(ValueError, match="must be positive"):
        SolveBudget(steps=0)


def test_train_records_a_curve_and_is_reproducible():
    run = lambda seed: train(
        MDP,
        REWARD,
        problem=PROBLEM,
        solver=PPO_SOLVER,
        policy=UNIFORM,
        budget=SolveBudget(steps=4 * PPO_SOLVER.steps_per_update),
        seed=seed,
        updates_per_call=2,
    )
    result = run(0)
    steps = [point.steps for point in result.curve]
    assert steps == [2 * PPO_SOLVER.steps_per_update, 4 * PPO_SOLVER.steps_per_update]
    assert result.curve[1].report.gap < result.curve[0].report.gap
    assert result.curve[1].soft_return > result.curve[0].soft_return
    assert eqx.tree_equal(result.policy, run(0).policy)
    assert not eqx.tree_equal(result.policy, run(1).policy)


class Rewardless(OtherStarts):
    """The task, without a word on what it pays: whoever asks is told nonsense."""

    has_reward: ClassVar[bool] = False

    def reward(self, observation, action):
        return jnp.float32(1e6)


REWARDLESS = Rewardless(
    task=MDP,
    observations=jnp.eye(4, dtype=jnp.float32),
    count=jnp.int32(4),
    chance=jnp.float32(0.0),
    horizon=MDP.horizon,
)


def test_training_needs_no_reward_of_the_environments_own():
    """True returns are then unknown, and everything else is as it would be."""
    result = train(
        REWARDLESS,
        REWARD,
        problem=PROBLEM,
        solver=PPO_SOLVER,
        policy=UNIFORM,
        budget=SolveBudget(steps=PPO_SOLVER.steps_per_update),
    )
    point = result.curve[-1]
    assert np.isnan(point.true_return) and np.isnan(point.true_return_error)
    assert 0 < point.soft_return < 100


def test_training_on_no_reward_at_all_is_refused():
    with pytest.raises(ValueError, match="Rewardless has no reward of its own"):
        train(REWARDLESS, solver=PPO_SOLVER)


def test_nothing_is_known_before_a_solve():
    """Whatever the fields are: numbers are unknown, and no step was taken."""
    report = SolveReport.unknown()
    solved = solve(Exact(), 1, seed=0)[1]
    types = lambda report: [leaf.dtype for leaf in jax.tree.leaves(report)]
    assert types(report) == types(solved)
    assert report.steps == 0
    numbers = jax.tree.leaves(eqx.tree_at(lambda r: r.steps, report, jnp.nan))
    assert np.all(np.isnan(numbers))
    assert not SolveBudget(tolerance=1e9).met(report)


def test_each_solver_is_given_a_policy_that_suits_it():
    for environment in (MDP, LQR()):
        policy = policy_for(environment, Exact(), key=jr.key(0))
        Exact().init(environment, policy, key=jr.key(0))
        assert len(policy.network.layers) == 1
        network = policy_for(environment, PPO_SOLVER, key=jr.key(0))
        assert len(network.network.layers) == 3
    assert policy_for(
        make("pendulum").environment, PPO(), key=jr.key(0)
    ).head.bounds == (-2, 2)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="equal minibatches"):
        PPO(num_envs=3, num_steps=5, num_minibatches=2)
