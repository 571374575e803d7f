"""What an outer step compiles: a few programs, each of them once."""

import collections
import re

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest
from learning_setups import learner_of

from hyperirl import demos, tasks
from hyperirl.inner import PPO, true_reward
from hyperirl.inner.train import policy_for
from hyperirl.learning.step import outer_step
from hyperirl.problem import problem
from hyperirl.rewards import mlp_reward


@pytest.fixture(scope="module")
def shown():
    return demos.collect("tabular", 16, seed=0)


@pytest.mark.parametrize(
    "inner, solving",
    [
        (
            "ppo",
            ["_act", "_turn", "rewards_paid", "soft_values", "_take_steps", "_judge"],
        ),
        ("reinforce", ["_solve"]),
    ],
)
def test_each_program_is_compiled_once_and_a_second_step_compiles_none(
    shown, inner, solving, caplog
):
    jax.clear_caches()
    with jax.log_compiles():
        said = dict(inner=inner, inner_updates=3, method="ml-irl", adaptive=False)
        learner, state = learner_of("tabular", shown, 4, **said)
        state, *_ = outer_step(learner, state, 4, jnp.float32(0.0))
        counts = collections.Counter(_compiled(caplog))
        caplog.clear()
        outer_step(learner, state, 4, jnp.float32(0.5))
    parts = [*solving, "_is_far", "_try", "_learn_from"]
    assert [counts[name] for name in parts] == [1] * len(parts)
    assert _compiled(caplog) == []


def test_another_kind_of_reward_compiles_no_more_than_what_it_pays(caplog):
    mdp = tasks.make("tabular").environment
    solver = PPO(num_envs=4, num_steps=8, num_minibatches=2, critic_hidden=(4,))
    policy = policy_for(mdp, solver, key=jr.key(0))
    state = solver.init(mdp, policy, key=jr.key(1))
    update = lambda reward: solver.improve(
        mdp, reward, state, problem(), 1, key=jr.key(2)
    )
    size, space = mdp.observation_size, mdp.action_space
    other = mlp_reward(size, space, key=jr.key(3), hidden=(4,))
    update(true_reward(mdp))
    with jax.log_compiles():
        caplog.clear()
        update(other)
    assert _compiled(caplog) == ["rewards_paid"]


def _compiled(caplog) -> list[str]:
    """The names of the programs that the log says were compiled."""
    found = (re.match(r"Compiling jit\((.+?)\)", line) for line in caplog.messages)
    return [match[1] for match in found if match]
