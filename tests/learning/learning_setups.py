"""Configs and setups for tests, as the front door makes them."""

from hyperirl import tasks
from hyperirl.learning import complete, set_up
from hyperirl.learning.learner import init
from hyperirl.learning.setup import make_learner
from hyperirl.options import Options


def config_of(env, *, paper=False, **said):
    return complete(Options(**said), tasks.as_task(env), paper=paper)


def learner_of(env, demos, episodes, **said):
    """A learner and its first state."""
    setup = set_up(env, demos, Options(**said))
    learner = make_learner(setup)
    return learner, init(learner, setup.reward, setup.policy, episodes)
