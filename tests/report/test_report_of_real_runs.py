"""From `learn` to the page: what a step measured is what the report shows."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hyperirl.cli import main
from hyperirl.learning import Diverged, learn
from hyperirl.metrics import METRICS, CloneMetrics, LoopMetrics, StepMetrics
from hyperirl.report import write_report
from hyperirl.report.charts import lines_of
from hyperirl.report.curves import CURVES, DIAGNOSTICS
from hyperirl.report.reading import estimate, group_runs, read_runs
from hyperirl.runs import RunFolder

CHARTS = {chart.metric.name: chart for chart in (*CURVES, *DIAGNOSTICS)}


def drawn(*folders):
    """The metrics of which there is a curve."""
    groups = group_runs(read_runs(folders))
    return {name for name, chart in CHARTS.items() if lines_of(groups, chart)}


# Of challengers, and of policies whose scale has a limit: not in these runs.
ELSEWHERE = {"challenger_gain", "challenger_won", "min_scale", "at_min_scale"}


def names_of(kind):
    return {field.name for field in dataclasses.fields(kind)} - ELSEWHERE


@pytest.fixture(scope="module")
def skipping(learned, tmp_path_factory):
    """A run whose optimizer makes NaN in its third step, which stops it later."""
    poison = optax.GradientTransformation(
        lambda params: jnp.zeros((), jnp.int32),
        lambda updates, state, params=None: (
            jax.tree.map(lambda u: jnp.where(state == 2, jnp.nan, -0.1) * u, updates),
            state + 1,
        ),
    )
    config = RunFolder.open(learned()).config
    out = tmp_path_factory.mktemp("runs") / "skipping"
    with pytest.raises(Diverged):
        learn("tabular", config["demos"], agent_episodes=16, optimizer=poison, out=out)
    return out


def test_every_chart_is_fed_by_a_real_step(learned):
    assert drawn(learned()) == set(CHARTS) - {"skipped_total"}


@pytest.mark.parametrize(
    "method, kinds",
    [("fisher", (StepMetrics, LoopMetrics)), ("bc", (CloneMetrics, LoopMetrics))],
)
def test_every_number_of_the_schema_is_written_and_no_other(learned, method, kinds):
    for row in RunFolder.open(learned(method)).metrics():
        assert set(row) == set().union(*map(names_of, kinds))


def test_what_does_not_exist_in_a_run_is_not_written(learned):
    """ML-IRL has no curvature and no natural steps."""
    missing = {"radius", "damping", "residual", "solver_iterations"}
    missing |= {"effective_dimension", "certificate", "soft_bellman_cosine"}
    folder = learned("ml-irl")
    assert (
        set(RunFolder.open(folder).metrics()[0])
        == (names_of(StepMetrics) | names_of(LoopMetrics)) - missing
    )
    assert drawn(folder) == set(CHARTS) - missing - {"skipped_total"}


def test_the_learning_rate_of_the_report_is_that_of_the_schedule(learned):
    run = read_runs([learned()])[0]
    found, steps = run.column("learning_rate"), np.arange(60)
    cosine = 0.5 * (1 + np.cos(np.pi * steps / 60))
    np.testing.assert_allclose(found, 0.1 + 0.9 * cosine, rtol=1e-5)


def test_skipped_steps_are_counted_once(skipping, tmp_path):
    rows = RunFolder.open(skipping).metrics()
    flags = [row["skipped"] for row in rows]
    assert set(flags) == {0, 1} and sum(flags) == 5
    assert estimate(read_runs([skipping])[0], "skipped_total").mean == 5
    total = read_runs([skipping])[0].column("skipped_total")
    np.testing.assert_array_equal(total, np.cumsum(flags))
    assert "skipped_total" in drawn(skipping)
    page = write_report([skipping], tmp_path / "report.html").read_text()
    assert f"5 of {len(rows)} outer steps did nothing" in page


def test_the_held_out_gap_is_that_of_the_best_step(learned):
    """Plain steps, whose end is above their best."""
    folder = learned(natural=False)
    rows = RunFolder.open(folder).metrics()
    best, last = min(row["nll_valid"] for row in rows), rows[-1]["nll_valid"]
    floor = rows[0]["floor_valid"]
    assert best < last
    found = estimate(read_runs([folder])[0], "valid_gap_percent").mean
    assert found == pytest.approx(100 * (best - floor) / floor)


def test_the_row_of_a_group_has_means_and_ranges(learned, tmp_path):
    folders = [learned(seed=seed) for seed in range(3)]
    page = write_report(folders, tmp_path / "report.html").read_text()
    group = re.search('<tr class="mean">.*?</tr>', page).group()
    floors = [RunFolder.open(f).metrics()[0]["floor_valid"] for f in folders]
    assert len(set(floors)) == 3
    mean, low, high = (f"{f(floors):.2f}" for f in (np.mean, np.min, np.max))
    assert f'{mean} <span class="range">({low} to {high})</span>' in group


def test_a_group_is_drawn_as_its_mean(learned):
    folders = [learned(seed=seed) for seed in range(3)]
    (line,) = lines_of(group_runs(read_runs(folders)), CHARTS["nll_valid"])
    values = [run.column("nll_valid") for run in read_runs(folders)]
    np.testing.assert_allclose(line.y, np.mean(values, axis=0))
    np.testing.assert_allclose(line.low, np.min(values, axis=0))
    np.testing.assert_allclose(line.high, np.max(values, axis=0))


def test_a_run_that_lost_all_reason_says_so_above_everything(learned, tmp_path):
    wild, good = learned(learning_rate=1e6, natural=False), learned()
    page = write_report([wild], tmp_path / "report.html").read_text()
    box = re.search(
        '<main><p class="lead">[^<]*</p><ul class="warning".*?</ul>', page
    ).group()
    assert "left all reason" in box
    page = write_report([good], tmp_path / "report.html").read_text()
    assert '<ul class="warning"' not in page
    page = write_report([good, wild], tmp_path / "report.html").read_text()
    boxes = re.findall('<ul class="warning".*?</ul>', page)
    assert len(boxes) == 1 and f"<li>{wild.name}: The held-out NLL left" in boxes[0]


def without_truth(folder, out, evaluation):
    """The run as it would be if the environment had no true reward."""
    run = RunFolder.open(folder)
    copy = RunFolder.create(out, run.config, [])
    for row in run.metrics():
        gone = {"true_return", "rank_corr"}
        copy.append_metrics({k: v for k, v in row.items() if k not in gone})
    if evaluation is not None:
        copy.save_json("evaluation.json", evaluation)
    return copy.path


@pytest.mark.parametrize("evaluation", [None, {"true_reward": False, "policy_nll": 3}])
def test_a_report_says_what_a_missing_true_reward_takes_away(
    learned, tmp_path, evaluation
):
    blind = without_truth(learned(), tmp_path / "blind", evaluation)
    assert not {"true_return", "rank_corr"} & drawn(blind)
    page = write_report([blind], tmp_path / "report.html").read_text()
    assert page.count("has no true reward") == 1
    sentence = re.search("The environment has no true reward[^<]*", page).group()
    for missing in ("Return of a fresh policy", "hard way", "RankCorr", "EPIC"):
        assert missing in sentence
    page = write_report([blind, learned()], tmp_path / "report.html").read_text()
    assert "The environment of blind has no true reward" in page


@pytest.mark.parametrize("method", ["fisher", "bc"])
def test_a_report_does_not_deny_a_true_reward_that_there_is(learned, tmp_path, method):
    page = write_report([learned(method)], tmp_path / "report.html").read_text()
    assert "has no true reward" not in page


@pytest.mark.slow
def test_a_real_evaluation_is_shown(learned, tmp_path):
    """A budget of a few updates; every number that there is has its card."""
    run = RunFolder.open(learned(steps=12))
    main(["evaluate", str(run.path), "--seeds", "1", "--budget", "10000"])
    found = json.loads((run.path / "evaluation.json").read_text())
    page = write_report([run.path], tmp_path / "report.html").read_text()
    for title in ("Gap to the expert", "PolicyNLL", "EPIC distance", "RankCorr"):
        assert f"<h3>{title}</h3>" in page
    assert f"{found['epic_distance']:.4f}".rstrip("0") in page


def test_every_chart_has_words():
    for name in CHARTS:
        assert METRICS[name].title and METRICS[name].unit and METRICS[name].meaning
