"""Long demonstrations are learned from in segments, and reported on as they are."""

import jax.numpy as jnp
import numpy as np
import pytest
from learning_setups import config_of, learner_of

from hyperirl import demos, tasks
from hyperirl.learning import complete
from hyperirl.learning.step import outer_step
from hyperirl.options import Options
from hyperirl.tasks import Task


@pytest.fixture(scope="module")
def learner():
    made = demos.collect("tabular", 8)
    return learner_of("tabular", made, 4, segment=30, steps=2)


def test_training_is_in_segments_and_the_rest_is_whole(learner):
    parts, _ = learner
    assert parts.train.num_steps == 25  # A hundred steps in four parts.
    assert parts.valid.num_steps == 100
    assert (parts.agents.horizon, parts.environment.horizon) == (30, 100)
    np.testing.assert_allclose(parts.agents.chance, 3 / 4)


def test_a_step_learns_from_segments_and_shows_whole_episodes(learner):
    parts, state = learner
    state, metrics, shown = outer_step(parts, state, 4, jnp.float32(0.0))
    assert shown.num_steps == 100
    assert not metrics.skipped
    assert jnp.isfinite(metrics.outer_loss)


def test_only_long_episodes_of_worlds_that_can_follow_are_cut():
    """At 0.99; built-in tasks are learned from as a whole, at any discount."""
    long = tasks.make("tabular", horizon=1000).environment
    segment = lambda task, **said: complete(Options(**said), task).segment
    assert segment(Task(long)) == 200
    assert segment(Task(long), discount=0.9) == 20
    assert segment(Task(long), segment=0) == 0
    assert segment(Task(long), method="max-ent") == 0
    assert segment(Task(tasks.make("tabular").environment)) == 0
    for name in tasks.names:
        assert config_of(name, discount=0.9).segment == 0
        assert config_of(name, paper=True).segment == 0


def test_challengers_train_where_they_are_judged():
    made = demos.collect("tabular", 8)
    rivals = dict(challenge_every=2, trust_region=False, inner="ppo")
    parts, _ = learner_of("tabular", made, 4, segment=30, steps=2, **rivals)
    assert parts.challenge.environment is parts.agents
