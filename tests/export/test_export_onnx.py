"""ONNX graphs answer as NumPy does."""

import sys

import export_cases
import numpy as np
import pytest

from hyperirl import saving
from hyperirl.export import ExportError, export, numpy_policy, numpy_reward

REWARDS, POLICIES = export_cases.rewards(), export_cases.policies()
CLOSE = {"rtol": 3e-5, "atol": 3e-5}


def answers(graph: bytes, reads, **given):
    """By the evaluator that onnx brings; floating-point inputs get the right type."""
    reference = pytest.importorskip("onnx.reference")
    cast = lambda x: x if x.dtype.kind == "i" else x.astype(reads.dtype)
    session = reference.ReferenceEvaluator(graph)
    found = session.run(None, {name: cast(x) for name, x in given.items()})
    return dict(zip(session.output_names, found, strict=True))


@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_is_the_same_in_onnx(name):
    pytest.importorskip("onnx")
    from hyperirl.export.onnx_graph import reward_graph

    ours = numpy_reward(REWARDS[name])
    x, a = export_cases.steps(REWARDS[name], 0, 7)
    found = answers(reward_graph(ours), ours.reads, observation=x, action=a)["reward"]
    np.testing.assert_allclose(found, ours(x, a), **CLOSE)
    assert found.shape == (7,)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_the_same_in_onnx(name):
    pytest.importorskip("onnx")
    from hyperirl.export.onnx_graph import policy_graph

    ours = numpy_policy(POLICIES[name])
    x, _ = export_cases.steps(POLICIES[name], 0, 7)
    found = answers(policy_graph(ours), ours.reads, observation=x)
    np.testing.assert_allclose(found["action"], ours.mode(x), **CLOSE)
    assert set(found) in ({"action", "logits"}, {"action", "mean"})


def test_onnx_files_are_written_beside_the_others(tmp_path):
    pytest.importorskip("onnx")
    saving.save_reward(REWARDS["mlp-choices-level"], tmp_path / "reward.npz")
    written = export(tmp_path / "reward.npz", tmp_path / "out", onnx=True)
    assert "reward.onnx" in [path.name for path in written]


def test_without_the_package_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    saving.save_reward(REWARDS["mlp-choices-level"], tmp_path / "reward.npz")
    with pytest.raises(ExportError, match="need the package onnx"):
        export(tmp_path / "reward.npz", tmp_path / "out", onnx=True)
    assert not (tmp_path / "out").exists()
