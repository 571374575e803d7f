"""`hyperirl train`: which solver it trains with."""

import equinox as eqx
import numpy as np
import pytest

from hyperirl import inner, tasks
from hyperirl.cli.train import Train
from hyperirl.learning import complete
from hyperirl.learning.parts import make_inner
from hyperirl.options import Options


@pytest.mark.parametrize("env", ["cartpole", "pendulum"])
def test_training_and_learning_have_the_same_ppo(env):
    environment = tasks.make(env).environment
    learned = make_inner(
        complete(Options(inner="ppo", average=1), tasks.make(env)), environment
    )
    assert eqx.tree_equal(Train(env=env)._solver(environment), learned)


def test_a_learning_rate_that_is_given_is_the_one_that_is_used():
    environment = tasks.make("cartpole").environment
    for name in ("ppo", "sac", "reinforce"):
        solver = Train(solver=name, learning_rate=0.5)._solver(environment)
        np.testing.assert_allclose(solver.learning_rate, 0.5)


def test_the_closed_form_is_asked_for_by_name():
    solver = Train(solver="exact")._solver(tasks.make("lqr").environment)
    assert isinstance(solver, inner.Exact)
