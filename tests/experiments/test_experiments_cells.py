"""What cells really compute, at toy size."""

import pytest

from hyperirl.experiments import (
    estimators,
    expert,
    identities,
    learn,
    sketch_size,
    transfer,
    tuned,
    worker,
)
from hyperirl.experiments.cell import Cell


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["tabular", "lqr"])
def test_the_propositions_hold_where_they_are_claimed_and_only_there(problem, tmp_path):
    errors = identities.run({"problem": problem, "seed": 0}, tmp_path)["errors"]
    assert set(errors) <= set(identities._NAMES)
    for name, error in errors.items():
        if "not claimed" in identities._NAMES[name]:
            assert error > 1e-2, name
        else:
            assert error < (1e-9 if name == "differences" else 1e-11), name


@pytest.mark.slow
def test_estimators_are_measured_against_the_truth(tmp_path, monkeypatch):
    monkeypatch.setattr(estimators, "CROSSES", ("raw", "adjoint"))
    settings = {"problem": "tabular", "expected": True, "seed": 0}
    found = estimators.run(settings | {"episodes": [64], "draws": 4}, tmp_path)
    rows, methods = found["rows"], found["methods"]
    assert len(rows) == 2 * 4
    at = {(row["cross"], row["damping"]): row for row in rows}
    assert at["adjoint", 0.01]["cosine"] > at["raw", 0.01]["cosine"]
    lengths = [at["adjoint", damping]["length"] for damping in (1e-2, 1e-1, 1.0)]
    assert lengths == sorted(lengths, reverse=True), "damping shortens"
    cosines = {row["method"]: row["cosine"] for row in methods}
    assert min(cosines["soft-bellman"], cosines["fisher"]) > 0.9
    assert set(cosines) == {
        "fisher",
        "ml-irl",
        "soft-bellman",
        "nhgd",
        "parl",
        "penalty",
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:SCFD may be far")  # That is what it shows.
def test_a_large_sketch_of_a_batch_is_exact_and_a_small_one_is_damped(tmp_path):
    settings = {"hidden": [4, 4], "episodes": 4, "sizes": [2, 64], "seed": 0}
    solvers = sketch_size.run(settings, tmp_path)["solvers"]
    small, large = solvers["m = 2"], solvers["m = 64"]
    assert small["delta"] > 0 and large["delta"] == 0
    assert large["error"] < 0.1 < small["error"]
    assert solvers["explicit"]["error"] == 0


@pytest.mark.slow
def test_a_cell_learns_from_the_expert_of_another_and_is_evaluated(tmp_path):
    maker = expert.expert("trial", "lqr", steps=2000, episodes=20)
    made = worker.perform(maker, tmp_path)
    assert made["expert_return"] < 0
    cell = learn.learning(
        "trial",
        dict(env="lqr", method="bc", seed=1),
        preset="paper",
        evaluation={"budget": 10_000, "seeds": 1},
        expert=maker,
    )
    result = worker.perform(cell, tmp_path)
    assert result["config"]["demos"].endswith(f"{maker.id}/demos.npz")
    found = result["evaluation"]
    assert found["true_reward"] and found["policy_nll"]["n"] == 3
    assert "floor" not in found or found["floor"] is None  # It acted without noise.
    assert found["settings"]["budget"] == 10_000


@pytest.mark.slow
def test_transfer_takes_the_run_of_another_experiment(tmp_path):
    """On LQR, where policies are solved for; a clone is put there as it is."""
    run = tuned.tuned_cells("lqr", ("bc",), "quick", 1, {})[0]
    worker.perform(run, tmp_path)
    settings = {"env": "lqr", "steps": 10_000, "seed": 0}
    cloned = settings | {"method": "bc", "run": run.id}
    returns = {}
    for cell_settings in (cloned, settings | {"method": "true"}):
        cell = Cell("transfer", transfer.__name__, cell_settings)
        found = worker.perform(cell, tmp_path)["returns"]
        returns[cell_settings["method"]] = found
    assert list(returns["true"]) == ["unchanged", "B x0.5", "A: drift x2"]
    assert all(-100 < value < 0 for value in returns["true"].values())
    assert returns["bc"]["unchanged"] != returns["true"]["unchanged"]
