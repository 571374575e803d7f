"""Tasks and parts of the user's own, through the front door."""

import contextlib
import dataclasses
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import hyperirl as hi
from hyperirl import curvature, hypergradient, inner
from hyperirl.cli import main
from hyperirl.environments import AbstractEnvironment
from hyperirl.policies import AbstractPolicy, mlp_policy
from hyperirl.rewards import AbstractReward
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete


class Corridor(AbstractEnvironment):
    """Steps to the left and right, with only the methods it really needs."""

    length: float = 3.0
    horizon: int = eqx.field(static=True, default=12)

    @property
    def observation_size(self):
        return 1

    @property
    def action_space(self):
        return Discrete(2)

    def reset(self, *, key):
        return jr.uniform(key, (1,), jnp.float32, -self.length, self.length)

    def observe(self, state):
        return state

    def advance(self, state, action, *, key):
        move = jnp.where(action == 1, 0.5, -0.5).astype(jnp.float32)
        return jnp.clip(state + move, -self.length, self.length), jnp.asarray(False)


class Walker(AbstractPolicy):
    """Mostly towards the middle."""

    plan: AbstractPolicy

    def distribution(self, observation):
        return self.plan.distribution(observation)


class Nearness(AbstractReward):
    """A reward of the user's own: how near to a place."""

    place: jax.Array
    weight: jax.Array

    def value(self, observation, action):
        return -self.weight * jnp.sum((observation - self.place) ** 2)


@pytest.fixture(scope="module")
def shown():
    """Episodes of a policy that mostly walks towards the middle."""
    policy = mlp_policy(1, Discrete(2), key=jr.key(0), hidden=())
    where = lambda p: p.network.layers[0].weight
    weight = jnp.array([[1.0], [-1.0]], jnp.float32)
    policy = eqx.tree_at(where, policy, weight)
    episodes = rollout(Corridor(), policy, 24, key=jr.key(1))
    provenance = hi.demos.Provenance(environment="corridor", horizon=12)
    return hi.demos.Demos(episodes, provenance)


SMALL = dict(steps=2, agent_episodes=8, inner_updates=1, adaptive=False, progress=False)


@pytest.fixture(scope="module")
def learned(shown, tmp_path_factory):
    out = tmp_path_factory.mktemp("own") / "run"
    return hi.learn(Corridor(), shown, out=out, **SMALL)


def test_an_environment_with_only_what_it_needs_learns(learned):
    assert len(learned.metrics) == 2 and learned.config.env == "Corridor"
    assert learned.config.demo_starts == 0  # It cannot start where it was shown.
    assert not {"true_return", "rank_corr"} & set(learned.metrics[-1])
    assert np.isfinite(learned.reward(jnp.zeros(1, jnp.float32), 1))


def test_its_run_can_be_evaluated_without_a_true_reward(learned):
    found = hi.evaluate(learned, seeds=1, budget=8192, progress=False)
    assert found["true_reward"] is False
    assert np.isfinite(found["policy_nll"]["mean"]) and found["floor"] is None
    absent = {"env_return", "rank_corr", "epic_distance", "transfer", "hard_return"}
    assert not absent & set(found)


def test_a_folder_never_imports_an_environment(learned):
    """Only the user's word does; and it must be the same environment."""
    path = learned.folder.path
    with pytest.raises(ValueError, match="name it again: `task=` in Python, `--env`"):
        hi.resume(path)
    with pytest.raises(ValueError, match="was given another `env`"):
        hi.resume(path, task=Corridor(length=2.0))
    again = hi.resume(path, task=Corridor(), progress=False)
    assert len(again.metrics) == 2
    with pytest.raises(ValueError, match="name it again"):
        hi.evaluate(path)


def test_every_part_may_be_an_object(shown, tmp_path):
    reward = Nearness(jnp.ones(1, jnp.float32), jnp.float32(0.1))
    policy = Walker(mlp_policy(1, Discrete(2), key=jr.key(3), hidden=(4,)))
    solver = curvature.Explicit(damping=curvature.Absolute(0.5))
    estimator = hypergradient.Fisher(solver, hypergradient.Centred())
    parts = dict(
        reward=reward,
        policy=policy,
        inner=inner.PPO(num_envs=4, num_steps=8, num_minibatches=2),
        estimator=estimator,
        optimizer=optax.sgd(0.1),
    )
    out = tmp_path / "objects"
    task = hi.Task(Corridor(), "corridor", options=hi.Options(natural=False))
    result = hi.learn(task, shown, out=out, **parts, **SMALL)
    assert isinstance(result.reward.soft, Nearness)
    assert isinstance(result.policy, Walker)
    assert not np.allclose(result.reward.soft.place, 1.0)
    assert set(result.config.given) == {"env", *parts}
    assert result.config.method == result.config.reward == "given"
    with pytest.raises(ValueError, match="was given its own `estimator`"):
        hi.resume(out, task=task)
    other = parts | {"optimizer": optax.sgd(0.2)}
    with pytest.raises(ValueError, match="was given another `optimizer`"):
        hi.resume(out, task=task, **other)
    again = hi.resume(out, task=task, **parts, progress=False)
    assert jnp.array_equal(again.reward.soft.place, result.reward.soft.place)
    given = hi.learning.Given(**parts)
    found = hi.evaluate(
        out, task=task, given=given, seeds=1, budget=8192, progress=False
    )
    assert np.isfinite(found["policy_nll"]["mean"])


def test_a_solver_object_has_its_own_damping(shown):
    weak, strong = (
        hi.learn(
            Corridor(),
            shown,
            solver=curvature.Explicit(damping=curvature.Absolute(damping)),
            **SMALL,
        ).metrics[-1]["damping"]
        for damping in (0.5, 2.0)
    )
    assert (weak, strong) == (0.5, 2.0)


def test_what_a_task_knows_is_used_and_what_is_said_wins(shown):
    task = hi.Task(Corridor(), options=hi.Options(temperature=0.7, inner_updates=1))
    small = SMALL | {"steps": 1}
    del small["inner_updates"]
    config = hi.learn(task, shown, **small).config
    assert (config.temperature, config.inner_updates) == (0.7, 1)
    assert hi.learn(task, shown, temperature=0.2, **small).config.temperature == 0.2


def test_what_is_no_task_gets_one_sentence(shown):
    for thing, words in (
        ("CartPole-v1", "no task 'CartPole-v1'"),
        ("no_such_module:env", "Cannot import 'no_such_module'"),
        ("hyperirl:nothing", "has no 'nothing'"),
    ):
        with pytest.raises(ValueError, match=words):
            hi.learn(thing, shown)
    with pytest.raises(ValueError, match="There is no option `dampin`"):
        hi.learn("tabular", shown, dampin=1)


MODULE = """
    import equinox as eqx, jax.numpy as jnp, jax.random as jr
    from hyperirl.environments import AbstractEnvironment
    from hyperirl.spaces import Discrete

    print("imported", flush=True)

    class Corridor(AbstractEnvironment):
        horizon: int = eqx.field(static=True, default=6)
        observation_size = property(lambda self: 1)
        action_space = property(lambda self: Discrete(2))

        def reset(self, *, key):
            return jr.uniform(key, (1,), jnp.float32, -3, 3)

        def observe(self, state):
            return state

        def advance(self, state, action, *, key):
            return state + jnp.where(action == 1, 0.5, -0.5), jnp.asarray(False)

        def reward(self, observation, action):
            return -jnp.sum(observation**2)
"""


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Runs a command in an empty folder; its words, those it fails with included."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())  # The command adds the folder.

    def run(*words, code=0):
        monkeypatch.delitem(sys.modules, "my_module", raising=False)
        with pytest.raises(SystemExit) if code else contextlib.nullcontext() as caught:
            main(words)
        assert not code or caught.value.code == code
        output = capsys.readouterr()
        return output.out + output.err

    return run


@pytest.mark.slow
def test_every_command_takes_a_task_by_its_module(typed, tmp_path):
    """Collect, learn, evaluate, resume, report; a folder alone imports nothing."""
    (tmp_path / "my_module.py").write_text(textwrap.dedent(MODULE))
    env = ["--env", "my_module:Corridor"]
    collect = ["demos", "collect", *env, "--episodes", "12", "--updates", "1"]
    assert "imported" in typed(*collect, "--out", "demos.npz")
    small = ["--steps", "2", "--inner-updates", "1", "--agent-episodes", "8"]
    small += ["--no-adaptive", "--demos", "demos.npz", "--out", "run"]
    typed("learn", *env, *small)
    for command in "resume", "evaluate":
        refused = typed(command, "run", code=2)
        assert "name it again" in refused and "imported" not in refused
    typed("resume", "run", *env)
    judging = ["evaluate", "run", *env, "--seeds", "1", "--budget", "8192"]
    assert "hard way" in typed(*judging)
    assert "imported" not in typed("report", "run")
    assert (tmp_path / "run" / "report.html").exists()


def test_options_of_the_wrong_kind_get_one_sentence():
    """In a process of its own, without the type checks of tests."""
    program = """
        import hyperirl as hi
        for task, said in (
            ("lqr", dict(method="gail")),
            ("lqr", dict(seed="x")),
            ("lqr", dict(cross=3)),
            (object(), {}),
        ):
            try:
                hi.learn(task, **said)
            except ValueError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "`method` must be fisher, explicit, sketch, soft-bellman, nhgd, parl, penalty, "
        "matching, ml-irl, max-ent, exact, bc, got 'gail'.",
        "`seed` must be a whole number, got 'x'.",
        "`cross` must be adjoint, centred, raw, got 3.",
        "A task is a name, a `Task`, an environment or a function that makes one, got "
        "object; derive the environment's class from "
        "`hyperirl.environments.AbstractEnvironment` or `gymnasium.Env`.",
    ]


def test_the_namespace_is_complete():
    assert set(dir(hi)) >= {"learn", "evaluate", "rewards", "policies", "inner"}
    assert all(hasattr(hi, name) for name in dir(hi))
    assert hi.__version__.count(".") >= 2


def test_a_result_can_be_plotted(learned):
    figure = learned.plot()
    assert [axes.get_title() for axes in figure.axes]


def test_a_task_is_told_apart_by_what_it_is():
    """Fails if the pin of an environment ignores its numbers."""
    from hyperirl.learning.given import describe

    same = describe(Corridor()), describe(Corridor())
    assert same[0] == same[1] != describe(Corridor(length=2.0))
    assert describe(Corridor()) != describe(dataclasses.replace(Corridor(), horizon=13))
