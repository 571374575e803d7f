"""What cells that do not learn really compute, at toy size."""

import pytest

from hyperirl.experiments import estimators, identities


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
    rows = estimators.run(settings | {"episodes": [64], "draws": 4}, tmp_path)["rows"]
    assert len(rows) == 2 * 4
    at = {(row["cross"], row["damping"]): row for row in rows}
    assert at["adjoint", 0.01]["cosine"] > at["raw", 0.01]["cosine"]
    lengths = [at["adjoint", damping]["length"] for damping in (1e-2, 1e-1, 1.0)]
    assert lengths == sorted(lengths, reverse=True), "damping shortens"
