"""What `--reward` names is what is learned."""

import pytest

from hyperirl.learning import set_up
from hyperirl.options import Options
from hyperirl.rewards import PolynomialReward


@pytest.mark.parametrize(("kind", "terms"), [("polynomial", 15), ("additive", 6)])
def test_only_a_polynomial_multiplies_its_inputs(kind, terms):
    """Of four inputs: three that are seen, and the torque."""
    reward = set_up("pendulum", None, Options(reward=kind)).reward
    assert isinstance(reward, PolynomialReward)
    assert reward.weights.shape == (1, terms)
    assert reward.mixed == (kind == "polynomial")
