"""The temperature an environment gets where none is given."""

import pytest

from hyperirl import environments
from hyperirl.learning import LearnConfig, complete


@pytest.mark.parametrize("env", environments.names)
def test_it_is_the_papers_except_where_rewards_are_large(env):
    expected = 1.0 if env == "pendulum" else 0.1
    assert environments.usual_temperature(env) == expected
    assert complete(LearnConfig(env=env)).temperature == expected


def test_one_that_is_given_is_kept():
    assert complete(LearnConfig(env="pendulum", temperature=0.3)).temperature == 0.3
