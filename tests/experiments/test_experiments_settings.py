"""What the cells of experiments ask for, before anything is run."""

import typing

import equinox as eqx
import pytest

import hyperirl
from hyperirl import demos
from hyperirl.demos.splitting import deal_out, split_demos
from hyperirl.experiments import learn, tuned
from hyperirl.experiments.reproduce import load
from hyperirl.learning import evaluating, set_up
from hyperirl.options import Options, Solver
from hyperirl.tasks import make, names

BUDGETS = ("quick", "standard", "full")


def test_without_a_choice_there_are_no_trials():
    """Every method then has its defaults, and the time of the budget."""
    cells = tuned.tuned_cells("lqr", tuned.METHODS, "quick", 1, {})
    assert len(cells) == len(tuned.METHODS)
    for cell in cells:
        assert tuned.is_final(cell)
        limit = {} if cell.settings["config"]["method"] == "bc" else {"time": 4.0}
        known = {"env", "method", "seed", "test_seed", *limit}
        assert set(cell.settings["config"]) == known
        assert cell.settings["config"].get("time") == limit.get("time")


@pytest.mark.parametrize("env", ["cartpole", "cartpole-fixed", "lqr"])
def test_a_trial_sees_nothing_that_a_run_is_judged_on(env):
    trials = tuned.tuned_cells(env, tuned.METHODS, "standard", 5, {})
    trials = [cell for cell in trials if not tuned.is_final(cell)]
    done = {trial.id: {"best_nll_valid": 1.0} for trial in trials}
    runs = tuned.tuned_cells(env, tuned.METHODS, "standard", 5, done)
    runs = [cell for cell in runs if tuned.is_final(cell)]
    assert len(trials) == 4 * 9 and len(runs) == 5 * 10
    total = demos.load(env).num_episodes

    def dealt(cell):
        config = learn.settled(cell.settings)
        parts = deal_out(total, config.seed, config.test_seed)
        return [set(part.tolist()) for part in parts]

    seen = set().union(*(part for trial in trials for part in dealt(trial)[:2]))
    judged = [dealt(run)[2] for run in runs]
    assert all(judged) and not any(test & seen for test in judged)
    assert len({frozenset(dealt(run)[0]) for run in runs}) == 5, "seeds vary the rest"


def test_a_run_and_its_evaluation_keep_the_same_episodes():
    """Real parts, of the seeds that a cell says."""
    given = demos.collect("tabular", 20, seed=0)
    result = hyperirl.learn("tabular", given, "bc", seed=3, test_seed=5, progress=False)
    subject = evaluating._of_result(result)
    expected = split_demos(result.demos, 3, 5)
    other = split_demos(result.demos, 3)
    assert eqx.tree_equal(subject.parts.test.trajectories, expected.test.trajectories)
    assert not eqx.tree_equal(expected.test.trajectories, other.test.trajectories)
    setup = set_up("tabular", given, Options(seed=3, test_seed=5))
    for part, wanted in zip(setup.parts, expected, strict=True):
        assert eqx.tree_equal(part.trajectories, wanted.trajectories)


def test_a_folder_is_evaluated_on_the_episodes_that_its_run_kept(tmp_path):
    given, out = demos.collect("tabular", 20, seed=0), tmp_path / "run"
    said = dict(seed=3, test_seed=5, progress=False, out=out)
    result = hyperirl.learn("tabular", given, "bc", **said)
    subject = evaluating.subject_of(result.folder)
    expected = split_demos(result.demos, 3, 5).test
    assert eqx.tree_equal(subject.parts.test.trajectories, expected.trajectories)


def test_said_settings_win_over_those_of_the_paper():
    """The row of LQR with m = 64 once had m = 32, the paper's own."""
    cells = load("efficiency").cells("standard", 1, {})
    sketches = [cell for cell in cells if cell.settings["config"].get("sketch_size")]
    for cell in sketches:
        settled = learn.settled(cell.settings)
        assert settled.sketch_size == cell.settings["config"]["sketch_size"]
        assert (settled.solver, settled.cross, settled.damping) == ("scfd", "raw", 1e-3)
    on_lqr = [c for c in sketches if c.settings["config"]["env"] == "lqr"]
    sizes = [learn.settled(cell.settings).sketch_size for cell in on_lqr]
    assert sizes == [32, 64, 128, 256]


@pytest.mark.parametrize("budget", BUDGETS)
def test_every_solver_gets_the_same_runs_with_the_same_seeds(budget):
    groups = {}
    for cell in load("solvers").cells(budget, 2, {}):
        config = dict(cell.settings["config"])
        settled = learn.settled(cell.settings)
        solver = config.pop("solver")
        assert settled.solver == solver and settled.method == "fisher"
        groups.setdefault(solver, []).append(config)
    assert set(groups) == set(typing.get_args(Solver)) and len(groups) == 14
    assert all(configs == groups["explicit"] for configs in groups.values())


def test_a_fresh_policy_is_trained_as_long_as_its_task_says():
    """CartPole with a fixed horizon takes four times as long."""
    steps = {env: tuned.evaluation(env, "full")["budget"] for env in names}
    assert (
        steps["cartpole-fixed"]
        == 4 * steps["cartpole"]
        == make("cartpole-fixed").budget
    )
