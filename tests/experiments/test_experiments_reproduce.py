"""Every experiment from its cells to its page, with made-up results.

What the cells really do is tested by their parts, and at toy size by the tests of the
workers: here it is the bookkeeping, in seconds.
"""

import contextlib
import json
import random
import sys

import pytest

from hyperirl import cli
from hyperirl.cli import reproduce as command
from hyperirl.experiments import (
    estimators,
    expert,
    identities,
    learn,
    sketch_size,
)
from hyperirl.experiments import transfer as transfer_cells
from hyperirl.experiments.reproduce import NAMES, load, reproduce

BUDGETS = ("quick", "standard", "full")


def made_up(cell):
    """A result of the right form, different for every cell."""
    draw = random.Random(cell.id).random
    settings = cell.settings
    if cell.kind == identities.__name__:
        return {"errors": dict.fromkeys(identities._NAMES, 1e-12 * (1 + draw()))}
    if cell.kind == expert.__name__:
        return {"expert_return": -20 * draw()}
    if cell.kind == transfer_cells.__name__:
        return {"returns": {"unchanged": -draw(), "B x0.5": -2 * draw()}}
    if cell.kind == estimators.__name__:
        names = ("cosine", "relative_error", "relative_variance", "length")
        return {
            "rows": [
                {"cross": cross, "episodes": n, "damping": damping}
                | {name: draw() for name in names}
                for cross in estimators.CROSSES
                for n in settings["episodes"]
                for damping in estimators._DAMPINGS
            ],
            "methods": [
                {"method": "nhgd", "episodes": n} | {name: draw() for name in names}
                for n in settings["episodes"]
            ],
        }
    if cell.kind == sketch_size.__name__:
        names = ("error", "cosine", "certificate", "seconds")
        sketched = (*names, "delta", "damped_error", "damped_cosine")
        solvers = {"explicit": {name: draw() for name in names}}
        for size in settings["sizes"]:
            solvers[f"m = {size}"] = {name: draw() for name in sketched}
        return {"dim": 10, "rows": 100, "solvers": solvers}
    assert cell.kind == learn.__name__
    return _made_up_run(settings, draw)


def _made_up_run(settings, draw):
    steps = 1 if settings["config"]["method"] == "bc" else 8
    rows = {key: [draw() for _ in range(steps)] for key in learn._COLUMNS}
    cloned = settings["config"]["method"] == "bc"
    rows["step"] = list(range(1, steps + 1))
    rows["agent_episodes"] = [None if cloned else 32] * steps
    interval = lambda: {"mean": draw(), "low": 0.0, "high": 1.0, "n": 4}
    names = "policy_nll floor gap_percent env_return expert_return random_return"
    names = [*names.split(), "hard_return"]
    return {
        "config": learn.settled(settings).to_json(),
        "rows": rows,
        "diverged": None if draw() < 0.8 else "the loss was not finite",
        "warm_step_seconds": None if cloned else 0.5 + draw(),
        "best_nll_valid": 100 * draw(),
        "compile_seconds": 20.0,
        "peak_mb": 500 + draw(),
        "evaluation": {name: interval() for name in names}
        | ({} if cloned else {"rank_corr": interval(), "retraining_ratio": None}),
    }


@pytest.fixture
def pretend(tmp_path):
    """Runs cells by making results up; remembers which."""
    ran = []

    def run_cells(cells, alone):
        del alone
        for cell in cells:
            ran.append(cell.id)
            cell.save(tmp_path, made_up(cell))
        return {}

    return run_cells, ran


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_writes_its_files_once(name, pretend, tmp_path):
    run_cells, ran = pretend
    reproduce(name, "quick", 2, tmp_path, run_cells)
    folder = tmp_path / name
    found = json.loads((folder / "results.json").read_text())
    assert all(table["rows"] for table in found["tables"])
    assert len(set(ran)) == len(ran) == found["cells"]
    assert (folder / "figure.svg").read_bytes().startswith(b"<?xml")
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    table = (folder / "table.md").read_text()
    assert table.startswith(f"## {load(name).TITLE}") and "| --- |" in table
    page = (tmp_path / "report.html").read_text()
    assert f'<section id="{name}">' in page and "http" not in page.split("</style>")[1]
    reproduce(name, "quick", 2, tmp_path, run_cells)
    assert len(ran) == found["cells"], "finished cells were run again"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_more_seeds_only_add_cells(name, budget):
    ids = lambda seeds: [cell.id for cell in load(name).cells(budget, seeds, {})]
    few, many = ids(3), ids(5)
    assert len(set(many)) == len(many)
    assert set(few) <= set(many)


def test_a_failed_cell_is_told_and_the_rest_is_shown(pretend, tmp_path):
    run_cells, _ = pretend

    def fail_first(cells, alone):
        run_cells(cells[1:], alone)
        return {cells[0].id: "killed"}

    failed = reproduce("damping", "quick", 1, tmp_path, fail_first)
    assert list(failed.values()) == ["killed"]
    assert "1 of them failed" in (tmp_path / "damping" / "table.md").read_text()


def test_without_matplotlib_no_cell_is_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run_cells = lambda *_: pytest.fail("a cell was run")
    with pytest.raises(ValueError, match="need matplotlib"):
        reproduce("damping", "quick", 1, tmp_path, run_cells)


def test_the_command_tells_of_failed_cells_by_its_code(
    pretend, tmp_path, monkeypatch, capsys
):
    run_cells, _ = pretend

    def fail_first(cells, alone):
        run_cells(cells[1:], alone)
        return {cells[0].id: "killed"}

    for runner, code in ((fail_first, 1), (run_cells, None)):
        monkeypatch.setattr(command, "cell_runner", lambda *_, r=runner, **__: r)
        options = ["--seeds", "1", "--out", str(tmp_path)]
        with pytest.raises(SystemExit) if code else contextlib.nullcontext() as ended:
            cli.main(["reproduce", "damping", *options])
        assert code is None or ended.value.code == code
        assert ("1 cells failed" in capsys.readouterr().out) == bool(code)


def test_curves_and_transfer_share_the_runs_of_final_performance(pretend, tmp_path):
    run_cells, ran = pretend
    reproduce("final-performance", "quick", 1, tmp_path, run_cells)
    before = len(ran)
    reproduce("curves", "quick", 1, tmp_path, run_cells)
    assert len(ran) == before
    reproduce("transfer", "quick", 1, tmp_path, run_cells)
    assert len(ran) == before + 4  # ours, ML-IRL, a clone, and the true reward.


def test_trials_are_judged_by_held_out_likelihood_alone(pretend, tmp_path):
    """The settings of the best trial, and as many trials for every method."""
    run_cells, _ = pretend
    reproduce("final-performance", "standard", 1, tmp_path, run_cells)
    found = json.loads((tmp_path / "final-performance/results.json").read_text())
    rows = found["tables"][-1]["rows"]
    groups = {}
    for row in rows:
        groups.setdefault((row["env"], row["method"]), []).append(row)
    assert {len(trials) for trials in groups.values()} == {4}
    for trials in groups.values():
        best = min(trials, key=lambda row: row["nll"])
        assert [row for row in trials if row["chosen"]] == [best]


def test_what_a_solver_costs_is_told_seed_by_seed(tmp_path):
    """Each solver is one nat worse than the dense one; seeds differ by a hundred."""

    def run_cells(cells, alone):
        assert alone
        for cell in cells:
            config, result = cell.settings["config"], made_up(cell)
            nll = 200.0 + 100 * config["seed"] + (config["solver"] != "explicit")
            result["rows"] |= {"nll_valid": [nll] * 8, "floor_valid": [50.0] * 8}
            cell.save(tmp_path, result | {"best_nll_valid": nll - 20})
        return {}

    reproduce("solvers", "quick", 2, tmp_path, run_cells)
    found = json.loads((tmp_path / "solvers" / "results.json").read_text())
    (table,) = found["tables"]
    for row in table["rows"]:
        exact = row["solver"] == "explicit"
        assert row["best"]["mean"] == pytest.approx(180.0 + (not exact))
        assert row["last"]["mean"] == pytest.approx(200.0 + (not exact))
        for cost in (row["best_cost"], row["last_cost"]):
            assert cost is None if exact else (cost["mean"], cost["high"]) == (1, 1)
