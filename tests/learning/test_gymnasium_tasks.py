"""Gymnasium's environments through the front door."""

import contextvars
import sys
import textwrap

import gymnasium
import jax.random as jr
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import hyperirl as hi
from hyperirl.cli import main
from hyperirl.evaluation import FreshTraining, fresh
from hyperirl.learning import create_folder, reopen, set_up
from hyperirl.options import Options
from hyperirl.rollout import rollout
from hyperirl.runs import RunFolder

SMALL = dict(
    steps=2,
    agent_episodes=4,
    inner_updates=1,
    adaptive=False,
    progress=False,
    inner=hi.inner.PPO(num_envs=4, num_steps=16, num_minibatches=2),
)


def short():
    return gymnasium.make("CartPole-v1", max_episode_steps=20)


@pytest.fixture(scope="module")
def shown():
    """Episodes of a policy that follows the pole."""
    rng, observations, actions = np.random.default_rng(0), [], []
    env = short()
    for seed in range(8):
        seen, taken, over = [env.reset(seed=seed)[0]], [], False
        while not over:
            follow = int(seen[-1][2] + seen[-1][3] > 0)
            taken.append(follow if rng.random() < 0.9 else 1 - follow)
            observation, _, terminated, truncated, _ = env.step(taken[-1])
            seen.append(observation)
            over = terminated or truncated
        observations.append(np.asarray(seen, np.float32))
        actions.append(np.asarray(taken, np.int32))
    ends = [False] * 8
    made = dict(observations=observations, actions=actions, terminated=ends)
    return hi.demos.from_arrays(**made)


@pytest.fixture(scope="module")
def learned(shown, tmp_path_factory):
    out = tmp_path_factory.mktemp("gym") / "run"
    return hi.learn(short, shown, out=out, **SMALL)


def test_a_function_that_makes_an_environment_is_a_task(learned):
    assert learned.config.env == "CartPole-v1"
    assert len(learned.metrics) == 2 and "true_return" in learned.metrics[-1]
    assert learned.config.demo_starts == 0  # It cannot be put into a state.
    assert 1 <= learned.metrics[-1]["true_return"] <= 20


def test_the_same_seed_learns_the_same(shown, learned):
    again = hi.learn(short, shown, **SMALL)
    step = np.zeros(4, np.float32)
    assert again.reward(step, 1) == learned.reward(step, 1)
    assert again.metrics[-1]["nll_valid"] == learned.metrics[-1]["nll_valid"]


def test_its_run_is_judged_without_what_needs_a_function(learned):
    found = hi.evaluate(learned, seeds=1, budget=8192, progress=False)
    assert np.isfinite(found["env_return"]["mean"])
    assert found["random_return"]["mean"] <= 20
    absent = {"epic_distance", "expert_return", "retraining_ratio"}
    assert not absent & set(found)  # The demonstrations hold no rewards.


def test_a_folder_names_it_and_the_user_brings_it(learned):
    with pytest.raises(ValueError, match="name it again"):
        hi.resume(learned.folder.path, inner=SMALL["inner"])
    again = hi.resume(learned.folder.path, task=short, inner=SMALL["inner"])
    assert len(again.metrics) == 2


def test_an_id_is_safe_to_read_from_a_folder_and_a_module_is_not():
    assert hi.tasks.is_safe("gym:CartPole-v1") and hi.tasks.is_safe("cartpole")
    assert not hi.tasks.is_safe("gym:my_module:Mine-v0")
    assert not hi.tasks.is_safe("my_module:make_env")


def test_what_cannot_be_used_gets_one_sentence(shown):
    with pytest.raises(ValueError, match="knows no environment"):
        hi.learn("gym:CartPoel-v1", shown)
    with pytest.raises(ValueError, match="cartpole is cut after 500 steps"):
        hi.learn("cartpole", horizon=20)


def several(count, mode):
    return SyncVectorEnv([short] * count, autoreset_mode=mode)


def test_solvers_take_as_many_environments_as_a_vector_environment_has(shown):
    """To learn, and to judge a reward; else they ask for more than there are."""
    setups = [
        set_up(several(3, mode), shown, Options(inner=solver, average=1))
        for mode in AutoresetMode
        for solver in ("ppo", "sac")
    ]
    assert [setup.inner.num_envs for setup in setups] == [3] * 6
    usual = FreshTraining().fitting
    solver = lambda world: fresh._solver(world, usual(world), 0.0, 1.0)
    judge = lambda setup: solver(setup.environment)
    assert [judge(setup).num_envs for setup in setups] == [3] * 6


def test_a_vector_environment_is_a_task(shown):
    """How it restarts is the world's business, which has its own tests."""
    learned = hi.learn(several(4, AutoresetMode.NEXT_STEP), shown, **SMALL)
    assert learned.config.env == "CartPole-v1"
    assert [row["skipped"] for row in learned.metrics] == [0, 0]
    assert 1 <= learned.metrics[-1]["true_return"] <= 20


def unlimited():
    return gymnasium.make("CartPole-v1").unwrapped.__class__()


def test_the_demonstrations_say_where_episodes_are_cut_if_nothing_else_does(shown):
    with pytest.warns(UserWarning, match="CartPoleEnv does not say.*after 20 steps"):
        setup = set_up(unlimited, shown, Options())
    assert setup.environment.horizon == setup.config.horizon == 20


def test_a_run_keeps_the_horizon_it_was_told(shown, tmp_path):
    told = set_up(unlimited, shown, Options(), horizon=25)
    create_folder(told, tmp_path / "run", ["test"])
    setup = reopen(RunFolder.open(tmp_path / "run"), task=unlimited)
    for each in (told, setup):
        assert each.environment.horizon == each.config.horizon == 25
    played = rollout(setup.environment, setup.policy, 4, key=jr.key(0))
    assert max(played.lengths) <= 25


MODULE = """
    import gymnasium
    gymnasium.register(
        "Mine-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=15
    )
"""


def test_a_module_that_registers_environments_is_imported_if_asked(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "envs_of_mine.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())  # The command adds the folder.
    known = gymnasium.registry.copy()
    monkeypatch.setattr(gymnasium.envs.registration, "registry", known)
    collect = ["demos", "collect", "--env", "gym:Mine-v0", "--episodes", "4"]
    collect += ["--updates", "1", "--out", "mine.npz"]

    def refused(*words):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 2
        return capsys.readouterr().err

    assert "knows no environment" in refused(*collect)
    # In a context of its own, where the command keeps what it imported.
    contextvars.copy_context().run(main, ["--import", "envs_of_mine", *collect])
    assert hi.demos.load(tmp_path / "mine.npz").num_episodes == 4
    assert "Cannot import 'nowhere'" in refused("--import", "nowhere", *collect)
