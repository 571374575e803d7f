"""The examples run, at toy size."""

import importlib.util
import pathlib

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_an_environment_of_your_own(capsys):
    found = load("own_environment").main(steps=1, updates=1, budget=8192)
    assert np.isfinite(found["hard_return"]["mean"])
    assert "Parking learned by fisher: 1 outer steps" in capsys.readouterr().out
