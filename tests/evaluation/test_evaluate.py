"""The whole protocol on a finite MDP, where the right answers are known."""

import dataclasses
import importlib
import json

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import evaluation, exact, learning, tasks
from hyperirl.cli.evaluate import Evaluate
from hyperirl.demos import Demos, Provenance
from hyperirl.demos.splitting import split_demos
from hyperirl.evaluation.ranking import RandomPolicy
from hyperirl.options import Options
from hyperirl.policies import log_probs, softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import StandaloneReward, TableReward, standalone
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete
from hyperirl.trajectories import Trajectories

protocol = importlib.import_module("hyperirl.evaluation.judging")

STATES, ACTIONS = 4, 3
PROBLEM = problem(0.5, 0.9)
OPTIONS = {"num_states": STATES, "num_actions": ACTIONS, "horizon": 20}
# Sizes as users have them, so that the command below compiles nothing again.
TRAINING = evaluation.FreshTraining(
    budget=16 * 8192,
    first_rate=0.1,
    last_rate=1e-3,
    num_checks=2,
    check_episodes=512,  # A mean return within a third of a step of the true one.
)


@pytest.fixture(scope="module")
def task():
    return tasks.make("tabular", **OPTIONS)


@pytest.fixture(scope="module")
def mdp(task):
    return task.environment


@pytest.fixture(scope="module")
def demos(mdp):
    solve = eqx.filter_jit(exact.tabular.soft_optimal_policy)
    expert = solve(mdp, TableReward(mdp.rewards), PROBLEM)
    episodes = rollout(mdp, expert, 60, key=jr.key(0))
    provenance = Provenance(environment="tabular", options=OPTIONS, horizon=20)
    return Demos(episodes, provenance, eqx.filter_jit(log_probs)(expert, episodes))


@pytest.fixture(scope="module")
def ranking(mdp, demos):
    return evaluation.ranking_of_demos(mdp, demos)


class Judged(evaluation.Subject):
    """Fresh policies start uniform."""

    @property
    def policy_for(self):
        return lambda environment, key: uniform()


def uniform():
    return softmax_table(jnp.zeros((STATES, ACTIONS), jnp.float32))


@pytest.fixture(scope="module")
def truth(task, mdp, demos):
    return Judged(task, demos, 3, PROBLEM, uniform(), TableReward(mdp.rewards))


@pytest.fixture(scope="module")
def of_the_truth(truth, ranking):
    return evaluation.judge(truth, ranking=ranking, training=TRAINING)


def test_the_true_reward_closes_the_gap(of_the_truth, demos):
    floor = of_the_truth["floor"]["mean"]
    test = split_demos(demos, 3).test
    assert np.isclose(floor, float(jnp.mean(test.expert_nll)))
    uniform_nll = 20 * np.log(ACTIONS)
    gap = of_the_truth["gap"]["mean"]
    # What the training leaves; the untrained policy is at `uniform_nll - floor`.
    assert abs(gap) < 0.03 * (uniform_nll - floor) + 0.1
    assert np.isclose(of_the_truth["policy_nll"]["mean"], floor + gap)
    assert np.isclose(of_the_truth["gap_percent"]["mean"], 100 * gap / floor)


def test_solving_the_true_reward_gives_the_expert_back(of_the_truth):
    nll, floor = of_the_truth["solved_nll"], of_the_truth["floor"]
    assert nll["mean"] == pytest.approx(floor["mean"], rel=1e-5)
    assert of_the_truth["solved_gap_percent"]["mean"] == pytest.approx(0, abs=1e-3)
    ours, expert = of_the_truth["solved_return"], of_the_truth["expert_return"]
    assert ours["low"] < expert["high"] and expert["low"] < ours["high"]


def test_the_true_reward_ranks_perfectly_and_retrains_like_itself(of_the_truth):
    assert of_the_truth["rank_corr"]["mean"] == pytest.approx(1)
    assert of_the_truth["epic_distance"] == pytest.approx(0, abs=1e-6)
    assert of_the_truth["retraining_ratio"]["mean"] == pytest.approx(1)
    assert of_the_truth["rank_corr_constant"] is None  # All episodes are as long.
    assert of_the_truth["rank_corr_untrained"] < 1


def test_returns_lie_between_random_and_expert(of_the_truth):
    random, ours, expert = (
        of_the_truth[name] for name in ("random_return", "env_return", "expert_return")
    )
    assert random["high"] < ours["low"]
    assert ours["low"] < expert["high"] and expert["low"] < ours["high"]
    clone, floor = (of_the_truth[name]["mean"] for name in ("bc_nll", "floor"))
    assert floor - 1 < clone < 20 * np.log(ACTIONS) / 2


def test_what_is_written_is_plain_and_says_how_it_was_made(of_the_truth):
    text = json.dumps(of_the_truth, allow_nan=False)
    settings = json.loads(text)["settings"]
    assert settings["budget"] == TRAINING.budget and settings["seeds"] == 2
    assert settings["ranking_version"] == 1 and settings["split_seed"] == 3
    assert of_the_truth["transfer"] == {}
    curves = of_the_truth["curves"]["learned"]
    assert len(curves) == 2 and curves[0]["steps"][-1] == TRAINING.budget


def test_fresh_policies_may_start_in_states_of_the_training_episodes_alone(
    truth, demos, ranking, monkeypatch
):
    """Fails if test episodes are among them, or none at all."""
    asked = []

    def train(*_, starts, **__):
        asked.append(starts)
        raise InterruptedError

    monkeypatch.setattr(protocol, "train_fresh", train)
    with pytest.raises(InterruptedError):
        evaluation.judge(truth, ranking=ranking, training=TRAINING)
    assert eqx.tree_equal(asked, [split_demos(demos, 3).train.trajectories])


def test_the_progress_counts_every_training_in_every_world(truth, ranking, monkeypatch):
    shares = []

    def train(world, reward, problem, test, *, on_progress, **_):
        on_progress(1.0, "done")
        curve = evaluation.Curve((0,), (0.0,), (0.0,))
        nll = jnp.zeros(test.num_episodes, jnp.float32)
        return evaluation.Fresh(truth.policy, curve, jnp.zeros(2, jnp.float32), nll)

    monkeypatch.setattr(protocol, "train_fresh", train)
    task = dataclasses.replace(truth.task, variants=lambda home: {"same": home})
    evaluation.judge(
        dataclasses.replace(truth, task=task),
        ranking=ranking,
        training=TRAINING,
        seeds=1,
        on_progress=lambda share, words: shares.append(share),
    )
    np.testing.assert_allclose(shares, np.arange(1, 7) / 6)


def test_the_hard_way_is_without_entropy_and_from_the_usual_starts(
    truth, ranking, monkeypatch
):
    """Fails if the level is left out, entropy is paid, or demonstrated starts help."""
    asked = []

    def train(world, reward, problem, test, *, starts, **_):
        asked.append((reward, float(problem.temperature), starts is None))
        fresh = evaluation.Curve((0,), (0.0,), (0.0,))
        nll = jnp.zeros(test.num_episodes, jnp.float32)
        return evaluation.Fresh(truth.policy, fresh, jnp.zeros(2, jnp.float32), nll)

    monkeypatch.setattr(protocol, "train_fresh", train)
    standing = standalone(truth.reward, truth.environment.action_space, 0.5)
    subject = dataclasses.replace(truth, reward=standing)
    evaluation.judge(subject, ranking=ranking, training=TRAINING, seeds=1)
    soft, true, hard, hard_true = asked
    assert soft[0] is standing.soft and soft[1:] == (0.5, False)
    assert true[1:] == (0.5, False)
    assert hard[0] is standing and hard[1] < 1e-5 and hard[2]
    assert hard_true[0] is true[0] and hard_true[1] < 1e-5 and hard_true[2]


def test_the_true_reward_is_learned_the_hard_way_too(of_the_truth):
    """A finite MDP has no ends to prefer, so it is no harder there."""
    hard, true = of_the_truth["hard_return"], of_the_truth["hard_true_return"]
    assert hard == true  # The same reward, the same seeds.
    assert hard["mean"] > of_the_truth["expert_return"]["low"]


def test_a_policy_without_a_reward_is_measured_as_it_is(truth, ranking):
    cloned = dataclasses.replace(truth, reward=None)
    found = evaluation.judge(cloned, ranking=ranking)
    assert found["policy_nll"]["mean"] == pytest.approx(20 * np.log(ACTIONS))
    assert not {"epic_distance", "retraining_ratio", "hard_return"} & set(found)
    ours, random = found["env_return"], found["random_return"]  # The same policy.
    assert ours["low"] < random["high"] and random["low"] < ours["high"]


def test_a_ranking_is_that_of_the_reward_with_its_level(truth):
    """Episodes of 1 to 4 steps at -1 each: with a level of 2 the longest is best."""
    mask = np.tri(4, dtype=bool)
    states = jnp.zeros((4, 5, STATES), jnp.float32).at[:, :, 0].set(1.0)
    rewards = jnp.asarray(mask, jnp.float32)
    actions, ended = jnp.zeros((4, 4), jnp.int32), jnp.ones(4, bool)
    episodes = Trajectories(states, actions, jnp.asarray(mask), ended, rewards)
    random = RandomPolicy(Discrete(ACTIONS))
    ranking = evaluation.RankingSet(episodes, jnp.zeros(4, jnp.float32), random)
    learned = TableReward(-jnp.ones((STATES, ACTIONS), jnp.float32))
    found = protocol._of_reward(truth, StandaloneReward(learned, 2.0), ranking)
    assert found["rank_corr"]["mean"] == pytest.approx(1)
    assert found["rank_corr_soft"] == pytest.approx(-1)


def test_the_clone_is_selected_on_validation_and_measured_on_test_episodes(
    truth, monkeypatch
):
    asked = []

    def clone(policy, train, valid, *, key):
        asked.append((train, valid))
        return policy, None

    def measure(environment, policy, test, *, key, training):
        asked.append((test,))
        return None, jnp.zeros(test.num_episodes, jnp.float32)

    monkeypatch.setattr(protocol, "clone", clone)
    monkeypatch.setattr(protocol, "measure", measure)
    protocol._references(truth, TRAINING, None)
    train, valid, test = (part.trajectories for part in truth.parts)
    assert eqx.tree_equal(asked, [(train, valid), (test,)])


def test_a_gap_is_a_share_of_the_floor_whatever_its_sign(truth):
    """Densities of actions may exceed one, and then the floor is negative."""
    test = truth.parts.test
    ones = jnp.ones_like(test.expert_log_probs)
    likely = dataclasses.replace(test, expert_log_probs=ones)
    parts = truth.parts._replace(test=likely)
    nll = np.full(test.num_episodes, -18.0)
    found = protocol._likelihood([nll], parts)
    assert found["floor"]["mean"] == pytest.approx(-20)
    assert found["gap_percent"]["mean"] == pytest.approx(10)


def test_retraining_ends_at_95_percent_of_the_way_from_random_to_expert():
    curve = evaluation.Curve((0, 100), (-200.0, 0.0), (0.0, 0.0))
    fresh = evaluation.Fresh(uniform(), curve, None, jnp.zeros(1, jnp.float32))
    ends = {"random_return": {"mean": -200.0}, "expert_return": {"mean": -100.0}}
    found = protocol._retraining([fresh], [fresh], ends)["retraining"]
    assert found["threshold"] == pytest.approx(-105)
    assert found["learned_steps"] == found["true_steps"] == [pytest.approx(47.5)]


def test_the_command_writes_into_the_run_folder(demos, tmp_path, capsys):
    """One update each: that it runs, not what it finds."""
    out = tmp_path / "run"
    options = Options(seed=3, steps=1, temperature=0.5, discount=0.9)
    setup = learning.set_up("tabular", demos, options)
    folder = learning.create_folder(setup, out, ["hyperirl", "learn"])
    command = Evaluate(out, seeds=1, budget=8192)
    with pytest.raises(ValueError, match="neither a reward nor a policy"):
        command.run()
    learning.run(setup, folder)
    command.run()
    printed = capsys.readouterr().out
    assert "PolicyNLL" in printed and "hyperirl report" in printed
    settings = folder.load_json("evaluation.json")["settings"]
    assert (settings["budget"], settings["seeds"]) == (8192, 1)
    assert (settings["temperature"], settings["split_seed"]) == (0.5, 3)
    assert settings["discount"] == pytest.approx(0.9)
    picture = folder.load_json("picture.json")
    assert picture["kind"] == "matrices" and len(picture["scatter"]["x"]) == 88
    assert len(picture["along"]["true"]) == len(picture["along"]["learned"]) == 20
    (states,) = picture["visits"]["inputs"]
    counts = np.asarray(demos.trajectories.observations)[:, :-1].mean(axis=(0, 1))
    np.testing.assert_allclose(states["expert"], counts, atol=1e-4)
    assert 0 < states["overlap"] < 1 and len(states["agent"]) == STATES
