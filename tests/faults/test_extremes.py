"""Settings and demonstrations at the edge: a result, or a sentence; never a hang."""

import jax
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.learning import learn, set_up
from hyperirl.learning.loop import Diverged
from hyperirl.options import Options

REFUSED = {
    "temperature": [0.0, -1.0, float("inf")],
    "discount": [0.0, 1.0, 1.5],
    "damping": [0.0, -1.0, float("inf")],
    "learning_rate": [0.0, -1.0],
}
ALLOWED = [
    dict(temperature=1e-30),
    dict(temperature=1e30),
    dict(damping=1e-30),
    dict(damping=1e30),
    dict(learning_rate=1e30, natural=False),
    dict(learning_rate=1e-30, natural=False),
]


@pytest.fixture(scope="module")
def shown():
    return demos.collect("tabular", 40, seed=0)


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_setting_is_refused_by_its_name(name, shown):
    for value in REFUSED[name]:
        with pytest.raises(ValueError, match=f"`?{name}`?"):
            set_up("tabular", shown, Options(**{name: value}))


@pytest.mark.slow
@pytest.mark.parametrize("said", ALLOWED, ids=str)
def test_an_extreme_setting_learns_or_says_that_it_diverged(said, shown):
    try:
        learned = learn(
            "tabular", shown, steps=4, agent_episodes=8, progress=False, **said
        )
    except Diverged as error:
        assert "Lower the learning rate" in str(error)
        return
    for leaf in jax.tree.leaves((learned.reward, learned.policy)):
        assert np.isfinite(np.asarray(leaf)).all()


def test_a_refusal_of_many_sizes_is_short(shown):
    with pytest.raises(ValueError, match="sizes of at least 1") as error:
        set_up("tabular", shown, Options(reward_hidden=(0,) * 2000))
    assert len(str(error.value)) < 200
