"""Where the inner problem is solved: from states that the task rarely starts in."""

import jax
import jax.random as jr
import numpy as np
import pytest
from learning_setups import config_of

from hyperirl.learning import set_up
from hyperirl.learning.setup import make_practice
from hyperirl.options import Options


@pytest.fixture(scope="module")
def first_states():
    """First states of practice in `cartpole-fixed`, for some shares of other starts."""

    def draw(**shares):
        practice = make_practice(set_up("cartpole-fixed", None, Options(**shares)))
        keys = jr.split(jr.key(2), 2000)
        return np.asarray(jax.vmap(lambda key: practice.reset(key=key))(keys))

    return draw


def share_near(expected, happened):
    """Whether something happened as often as expected, by four standard errors."""
    error = (expected * (1 - expected) / len(happened)) ** 0.5
    return abs(np.mean(happened) - expected) < 4 * error


def test_episodes_start_lost_and_shown_as_often_as_asked_for(first_states):
    """Fails if one share eats into the other."""
    lost = lambda states: np.abs(states[:, 2]) > 0.25  # No demonstration leans so far.
    usual = lambda states: np.all(np.abs(states) <= 0.05, axis=1)
    shown = first_states(demo_starts=1.0, lost_starts=0.0)
    strayed = first_states(demo_starts=0.0, lost_starts=1.0)
    assert not lost(shown).any() and lost(strayed).mean() > 0.8
    states = first_states(demo_starts=0.4, lost_starts=0.2)
    assert share_near(0.2 * lost(strayed).mean(), lost(states))
    among_others = 0.4 * usual(shown).mean() + 0.2 * usual(strayed).mean()
    assert share_near(0.4 + among_others, usual(states))


def test_without_shares_the_task_is_practiced_itself(first_states):
    states = first_states(demo_starts=0.0, lost_starts=0.0)
    assert np.all(np.abs(states) <= 0.05)


def test_by_default_only_a_task_that_does_not_end_is_entered_lost():
    shares = {
        env: config_of(env).lost_starts
        for env in ("cartpole", "cartpole-fixed", "pendulum", "lqr", "tabular")
    }
    assert {env for env, share in shares.items() if share} == {"cartpole-fixed"}


@pytest.mark.parametrize("shares", [(-0.1, 0.0), (0.0, -0.1), (0.7, 0.4)])
def test_shares_that_cannot_be_are_refused(shares):
    settings = dict(zip(("demo_starts", "lost_starts"), shares, strict=True))
    with pytest.raises(ValueError, match="are shares of all episodes|at least 0"):
        Options(**settings).check()
