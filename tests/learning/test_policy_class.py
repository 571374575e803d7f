"""The policy class of the inner problem, by environment."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from learning_setups import config_of

from hyperirl import demos, tasks
from hyperirl.environments import Pendulum
from hyperirl.evaluation.fresh import policies_like
from hyperirl.learning import set_up, setup
from hyperirl.options import Options
from hyperirl.policies import CensoredHead, GaussianHead, touches_bounds
from hyperirl.spaces import Box


def policy_for(env, **settings):
    config, environment = config_of(env, **settings), tasks.make(env).environment
    train = demos.load(env.removesuffix("-clipped")).trajectories
    return setup.make_policy(config, environment, train, key=jr.key(0)), train


@pytest.mark.parametrize(
    ("env", "covariance", "squashed"),
    [
        ("lqr", "full", False),
        ("lqr-clipped", "full", False),
        ("pendulum", "state", True),
    ],
)
def test_vectors_have_the_noise_that_their_expert_has(env, covariance, squashed):
    """Fails if the torque of Pendulum is equally uncertain everywhere."""
    head = policy_for(env)[0].head
    assert isinstance(head, GaussianHead)
    assert (head.covariance, head.bounds is not None) == (covariance, squashed)


def test_networks_see_demonstrated_states_as_numbers_of_the_same_size():
    """Fails if an angle of a tenth looks ten times smaller than a position of one."""
    policy, train = policy_for("cartpole")
    assert policy.normalizer is not None
    seen = jax.vmap(policy.normalizer)(train.observations[:, :-1][train.mask])
    np.testing.assert_allclose(np.std(seen, axis=0), 1, rtol=1e-3)
    np.testing.assert_allclose(np.mean(seen, axis=0), 0, atol=1e-3)
    assert policy_for("cartpole", normalize=False)[0].normalizer is None


def test_inputs_stay_as_they_are_where_states_run_away_and_in_the_paper():
    assert policy_for("lqr")[0].normalizer is None
    assert config_of("cartpole", paper=True).normalize is False


def touching(value):
    """Pendulum's demonstrations, with one action of this torque."""
    train = demos.load("pendulum").trajectories
    actions = train.actions.at[3, 5, 0].set(value)
    return eqx.tree_at(lambda t: t.actions, train, actions)


@pytest.mark.parametrize(
    ("torque", "clipped"), [(2.0, True), (-1.999999, True), (1.999, False)]
)
def test_actions_at_a_bound_choose_the_clipped_class(torque, clipped):
    """Fails if a squashed density is asked for where it is infinite."""
    train = touching(torque)
    made = demos.Demos(train, demos.load("pendulum").provenance)
    found = set_up("pendulum", made, Options()).policy.head
    assert isinstance(found, CensoredHead if clipped else GaussianHead)


def test_padding_and_boxes_without_bounds_touch_nothing():
    train = demos.load("pendulum").trajectories
    mask = train.mask.at[3, 5:].set(False)
    cut = eqx.tree_at(lambda t: t.mask, touching(2.0), mask)
    assert not touches_bounds(cut, Box(1, -2.0, 2.0))
    assert not touches_bounds(touching(2.0), Box(1))
    assert touches_bounds(touching(2.0), Box(1, -2.0, 2.0))


def test_fresh_policies_are_clipped_if_that_of_the_run_is():
    """Fails if an evaluation judges another class than the run learned with."""
    clipped = setup.make_policy(
        config_of("pendulum"), Pendulum(), touching(2.0), clipped=True, key=jr.key(0)
    )
    fresh = policies_like(clipped)(Pendulum(), jr.key(1))
    assert fresh.head == clipped.head
    assert jax.tree.structure(fresh) == jax.tree.structure(clipped)
