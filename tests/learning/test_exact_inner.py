import equinox as eqx
import jax
import jax.random as jr
import pytest
from learning_setups import config_of

from hyperirl import demos, exact
from hyperirl.environments import LQR
from hyperirl.learning.parts import make_policy
from hyperirl.problem import problem


def test_the_policy_of_lqr_solved_exactly_has_the_form_of_the_solution():
    """The exact solver puts its solution in the policy's place, leaf by leaf."""
    lqr = LQR()
    policy = make_policy(
        config_of("lqr", inner="exact"),
        lqr,
        demos.load("lqr").trajectories,
        key=jr.key(0),
    )
    solution = eqx.filter_eval_shape(
        exact.lqr.soft_optimal_policy, lqr, exact.lqr.true_reward(lqr), problem()
    )
    assert jax.tree.structure(policy) == jax.tree.structure(solution)
    exact.lqr.gain_and_scale(policy)


def test_a_network_cannot_be_the_exact_solution():
    config = config_of("lqr", inner="exact", policy_hidden=(8,))
    with pytest.raises(ValueError, match="no hidden layers, and `policy_hidden` is"):
        make_policy(config, LQR(), demos.load("lqr").trajectories, key=jr.key(0))
