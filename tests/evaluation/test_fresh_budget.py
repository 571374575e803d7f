"""How long a fresh policy is trained where nobody says."""

import pytest

from hyperirl import environments, evaluate


@pytest.mark.parametrize(
    ("env", "millions"),
    [("cartpole", 1), ("lqr", 1), ("cartpole-fixed", 4), ("pendulum", 4)],
)
def test_longer_where_untrained_policies_are_lost(env, millions):
    assert evaluate.usual_budget(environments.make(env)) == millions * 1_000_000
