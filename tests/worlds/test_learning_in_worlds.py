"""Solvers learn in a world that is stepped with the code they learn with elsewhere."""

import importlib
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from toys import TabularStepper, vector

from hyperirl import exact
from hyperirl.environments import random_mdp
from hyperirl.inner import (
    PPO,
    SAC,
    Reinforce,
    SolveBudget,
    SolveReport,
    ppo_for,
    ppo_from_scratch,
    train,
)
from hyperirl.policies import softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import RecordedReward, TableReward, rewards_of
from hyperirl.rollout import rollout
from hyperirl.worlds import make_world
from hyperirl.worlds.engine import Engine
from hyperirl.worlds.world import SteppedWorld

MDP = random_mdp(4, 3, key=jr.key(0), stop=0.02, horizon=60)
PROBLEM = problem(temperature=1.0, discount=0.9)
UNIFORM = softmax_table(jnp.zeros(MDP.rewards.shape, jnp.float32))
SOLVERS = {
    "ppo": (PPO(num_envs=32, num_steps=64, learning_rate=0.03), 15),
    "sac": (
        SAC(
            num_envs=16,
            num_gradients=2,
            capacity=16_384,
            learning_rate=0.02,
            critic_rate=3e-3,
            hidden=(32,),
        ),
        300,
    ),
    "reinforce": (Reinforce(num_episodes=64, learning_rate=0.05), 80),
}
each_solver = pytest.mark.parametrize("name", SOLVERS)


def stepped(mdp=MDP):
    engine = Engine("mdp", lambda num_envs: TabularStepper(mdp, num_envs))
    return SteppedWorld(engine=engine, horizon=mdp.horizon)


@jax.jit
def worst_kl(table):
    best = exact.tabular.soft_value_iteration(MDP, MDP.rewards, PROBLEM).logits
    log_pi = jax.nn.log_softmax(table.astype(jnp.float64))
    return jnp.max(jnp.sum(jnp.exp(log_pi) * (log_pi - best), axis=1))


def solve(world, name, reward, updates=None):
    solver, usual = SOLVERS[name]
    state = solver.init(world, UNIFORM, key=jr.key(1))
    updates = usual if updates is None else updates
    return solver.solve(world, reward, state, PROBLEM, updates, key=jr.key(2))


@pytest.mark.parametrize(
    "name, reward",
    [
        ("ppo", RecordedReward()),
        ("sac", RecordedReward()),
        ("reinforce", RecordedReward()),
        ("ppo", TableReward(MDP.rewards)),
    ],
)
def test_solvers_reach_the_soft_optimal_policy(name, reward):
    """On the rewards that were paid, and on a function of observation and action."""
    state, report = solve(stepped(), name, reward)
    table = state.policy.network.layers[0].weight.T
    assert worst_kl(table) < 0.1  # It starts at 1.9.
    assert np.isfinite(report.soft_return)


@each_solver
def test_a_stepped_world_leaves_the_same_state_as_a_compiled_one(name):
    """But for the rewards that were paid and the actors: all else is one structure."""
    solver, _ = SOLVERS[name]
    ours = solver.init(stepped(), UNIFORM, key=jr.key(1))
    theirs = solver.init(MDP, UNIFORM, key=jr.key(1))
    facts = lambda tree: [
        (jax.tree_util.keystr(path), leaf.shape, leaf.dtype)
        for path, leaf in jax.tree_util.tree_leaves_with_path(
            eqx.filter(tree, eqx.is_array)
        )
        if not any(
            part in jax.tree_util.keystr(path)
            for part in ("rewards", "actors.states", "branches")
        )
    ]
    assert facts(ours) == facts(theirs)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_a_solver_takes_as_many_environments_as_a_world_has(num_envs):
    """With as much experience, but for what cannot be dealt out evenly."""
    world = make_world(vector(AutoresetMode.SAME_STEP, (4,) * num_envs), horizon=9)
    ppo, sac = ppo_for(world), SAC().fitting(world)
    assert ppo.num_envs == sac.num_envs == num_envs
    usual = PPO().steps_per_update
    assert 0 <= usual - ppo.steps_per_update < PPO().num_minibatches * num_envs
    assert 0 <= sac.num_initial_steps * num_envs - 3200 < num_envs
    assert 0 <= sac.capacity - SAC().capacity < num_envs
    assert ppo_for(stepped()).num_envs == PPO().num_envs


def test_training_reports_what_the_world_paid():
    trained = train(
        stepped(),
        problem=PROBLEM,
        solver=SOLVERS["ppo"][0],
        policy=UNIFORM,
        budget=SolveBudget(steps=16_000),
        num_evaluation_episodes=128,
    )
    episodes = rollout(MDP, trained.policy, 128, key=jr.key(3))
    expected = float(jnp.mean(jnp.sum(episodes.rewards, axis=1)))
    last = trained.curve[-1]
    assert abs(last.true_return - expected) < 5 * last.true_return_error


def test_recorded_rewards_are_those_of_the_trajectories():
    world = stepped()
    episodes = rollout(world, UNIFORM, 5, key=jr.key(0))
    paid = rewards_of(RecordedReward(), episodes)
    expected = rewards_of(TableReward(MDP.rewards), episodes)
    np.testing.assert_allclose(paid, expected, rtol=1e-6)


def test_recorded_rewards_are_not_made_up():
    with pytest.raises(ValueError, match="steps that were taken"):
        RecordedReward()(jnp.zeros(2), jnp.zeros(1))
    episodes = rollout(MDP, UNIFORM, 2, key=jr.key(0), record_rewards=False)
    with pytest.raises(ValueError, match="no recorded rewards"):
        rewards_of(RecordedReward(), episodes)


def test_episodes_start_elsewhere_as_often_as_asked():
    elsewhere = jnp.eye(4)[jnp.array([2, 3, 0])]  # The last is padding.
    world = stepped().starting_at(elsewhere, chance=1.0, horizon=3, count=2)
    played = rollout(world, UNIFORM, 200, key=jr.key(0))
    first = np.asarray(played.observations[:, 0].argmax(axis=1))
    assert set(first) == {2, 3}
    assert played.num_steps == 3
    never = stepped().starting_at(elsewhere, chance=0.0, horizon=3)
    played = rollout(never, UNIFORM, 400, key=jr.key(0))
    share = np.asarray(played.observations[:, 0]).mean(axis=0)
    error = np.sqrt(np.asarray(MDP.initial) / 400)
    assert (np.abs(share - MDP.initial) < 5 * error).all()


def test_acting_starts_elsewhere_too():
    world = stepped().starting_at(jnp.eye(4)[:1], chance=1.0, horizon=5)
    actors = world.start(8, key=jr.key(0))
    _, batch = world.act(UNIFORM, actors, 30, key=jr.key(1))
    begins = np.asarray(batch.times == 0)
    assert begins.sum() > 20
    assert (np.asarray(batch.observations)[begins].argmax(axis=-1) == 0).all()


@pytest.fixture
def hopper():
    pytest.importorskip("mujoco.batch")
    return lambda: make_world("gym:Hopper-v5")


def test_a_killed_run_goes_on_to_the_bit(hopper):
    """All that is kept is what the solver's state holds; the process is a new one."""
    solver = PPO(num_envs=4, num_steps=16, critic_hidden=(8,))
    reward, setting = RecordedReward(), problem(0.1, 0.99)

    def run(worlds):
        first, second = worlds
        policy = _policy(first)
        state = solver.init(first, policy, key=jr.key(0))
        state, _ = solver.solve(first, reward, state, setting, 2, key=jr.key(1))
        if second is not first:  # Something else happened there.
            second.start(4, key=jr.key(9))
        state, _ = solver.solve(second, reward, state, setting, 2, key=jr.key(2))
        return jax.tree.leaves(eqx.filter(state, eqx.is_array))

    world = hopper()
    for ours, theirs in zip(
        run((world, world)), run((hopper(), hopper())), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def _policy(world):
    from hyperirl.policies import mlp_policy

    size, space = world.observation_size, world.action_space
    return mlp_policy(size, space, hidden=(8,), key=jr.key(5))


def test_a_robot_starts_where_a_demonstration_has_been(hopper):
    world = hopper()
    played = rollout(world, _policy(world), 2, key=jr.key(0), horizon=12)
    there = played.observations[:, 10]
    started = world.starting_at(there, chance=1.0, horizon=4)
    again = rollout(started, _policy(world), 6, key=jr.key(1))
    gaps = np.abs(np.asarray(again.observations[:, 0])[:, None] - there[None]).max(-1)
    assert gaps.min(axis=1).max() < 1e-5


def test_robots_are_trained_from_scratch_in_many_small_steps():
    """A reward that changes all the time is learned from in large ones, as before."""
    robot, other = make_world("gym:InvertedPendulum-v5"), stepped()
    trained = ppo_from_scratch(robot)
    gradients = lambda ppo: ppo.num_epochs * ppo.num_minibatches / ppo.steps_per_update
    assert gradients(trained) > 30 * gradients(ppo_for(robot))
    assert ppo_from_scratch(robot, num_envs=4).num_envs == 4
    assert ppo_from_scratch(other).steps_per_update == ppo_for(other).steps_per_update


def test_a_robots_curve_has_no_more_points_for_its_smaller_updates(monkeypatch):
    """Playing the episodes of a point takes longer than forty such updates."""
    module, asked = importlib.import_module("hyperirl.inner.train"), []

    def solve_until(*_, updates_per_call, **__):
        asked.append(updates_per_call)
        state, report = SimpleNamespace(policy=UNIFORM), SolveReport.unknown()
        return state, SimpleNamespace(report=report)

    monkeypatch.setattr(module, "solve_until", solve_until)
    train(make_world("gym:InvertedPendulum-v5"))
    train(stepped())
    assert asked == [40, 10]
