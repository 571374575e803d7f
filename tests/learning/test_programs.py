"""What an outer step compiles: a few programs, each of them once."""

import collections
import re

import jax
import jax.numpy as jnp
import pytest
from learning_setups import learner_of

from hyperirl import demos
from hyperirl.learning.step import outer_step


@pytest.fixture(scope="module")
def shown():
    return demos.collect("tabular", 16, seed=0)


@pytest.mark.parametrize(
    "inner, solving",
    [("ppo", ["_act", "_turn", "update", "_report"]), ("reinforce", ["_solve"])],
)
def test_each_program_is_compiled_once_and_a_second_step_compiles_none(
    shown, inner, solving, caplog
):
    jax.clear_caches()
    with jax.log_compiles():
        said = dict(inner=inner, inner_updates=3, method="ml-irl", adaptive=False)
        learner, state = learner_of("tabular", shown, 4, **said)
        state, *_ = outer_step(learner, state, 4, jnp.float32(0.0))
        counts = collections.Counter(_compiled(caplog))
        caplog.clear()
        outer_step(learner, state, 4, jnp.float32(0.5))
    parts = [*solving, "_is_far", "_try", "_learn_from"]
    assert [counts[name] for name in parts] == [1] * len(parts)
    assert _compiled(caplog) == []


def _compiled(caplog) -> list[str]:
    """The names of the programs that the log says were compiled."""
    found = (re.match(r"Compiling jit\((.+?)\)", line) for line in caplog.messages)
    return [match[1] for match in found if match]
