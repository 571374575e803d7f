import numpy as np
import pytest

from hyperirl import demos


@pytest.fixture
def flat():
    """Valid flat arrays of three CartPole-like episodes of 4, 1 and 2 steps."""
    generator = np.random.default_rng(0)
    return {
        "observations": generator.normal(size=(10, 4)).astype(np.float32),
        "actions": np.array([0, 1, 1, 0, 1, 0, 1], np.int32),
        "lengths": np.array([4, 1, 2], np.int32),
        "terminated": np.array([True, False, True]),
        "rewards": np.ones(7, np.float32),
        "expert_log_probs": np.log(generator.uniform(size=7)).astype(np.float32),
    }


@pytest.fixture
def provenance():
    return demos.Provenance(
        environment="cartpole",
        options={"half_length": 1.0, "horizon": 200},
        horizon=200,
        temperature=0.1,
        discount=0.99,
        expert="by hand",
        report={"gap": 0.01},
        seed=3,
        hyperirl_version="0.1.0",
    )
