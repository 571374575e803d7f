"""Shards of environments in other processes: the same numbers, also after a death."""

import os
import signal

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from toys import Counter, Echo

from hyperirl.policies import softmax_table
from hyperirl.rollout import rollout
from hyperirl.worlds import make_world
from hyperirl.worlds.gym import copies
from hyperirl.worlds.processes import crew
from hyperirl.worlds.robots import InvertedPendulum
from hyperirl.worlds.workers import Crew, Here, ShardedStepper

NUM_ENVS = 5


def echoes(num_envs):
    return copies(Echo, num_envs)


def robots(num_envs):
    from hyperirl.worlds.mujoco import MujocoStepper

    return MujocoStepper(InvertedPendulum(), num_envs, num_threads=1)


MAKES = {"echoes": echoes, "robots": robots}


def steps(stepper, before=None):
    """Some steps with a restart in the middle; `before` is called before the third."""
    rng, seen = np.random.default_rng(0), []
    stepper.restart(np.arange(NUM_ENVS), rng=rng)
    for i in range(5):
        if i == 2 and before is not None:
            before()
        actions = rng.uniform(-0.5, 0.5, (NUM_ENVS, 1)).astype(np.float32)
        seen.append(stepper.step(actions))
        if i == 3:
            stepper.restart(np.array([1, 4]), rng=rng)
            seen.append((stepper.observe(),))
    return [np.asarray(x) for row in seen for x in row[:4]]


@pytest.fixture(scope="module", params=MAKES)
def made(request):
    """What makes the environments, their process workers, and steps without them."""
    make = MAKES[request.param]
    workers = crew(make, 2)
    here = steps(ShardedStepper(Crew([Here(make), Here(make)]), NUM_ENVS))
    yield workers, here
    workers.close()


def test_processes_take_the_same_steps_as_shards_here(made):
    workers, here = made
    for ours, theirs in zip(
        steps(ShardedStepper(workers, NUM_ENVS)), here, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_worker_that_is_killed_costs_its_shard_at_most(made):
    """Where states can be set, nothing at all; the other shard never."""
    workers, here = made
    stepper = ShardedStepper(workers, NUM_ENVS)

    def kill():
        process = workers.workers[1].process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    with pytest.warns(RuntimeWarning, match="Worker 1 died and was replaced; its 2"):
        found = steps(stepper, kill)
    for ours, theirs in zip(found, here, strict=True):
        kept = slice(None) if stepper.can_save else slice(3)
        np.testing.assert_array_equal(ours[kept], theirs[kept])
    if not stepper.can_save:
        truncated = found[4 * 2 + 3]  # Of the third step.
        assert truncated.tolist() == [False] * 3 + [True] * 2


def test_an_environment_that_fails_is_told_and_not_restarted(made):
    workers, _ = made
    lives, stepper = list(workers.lives), ShardedStepper(workers, 1)
    with pytest.raises(RuntimeError, match="failed in a worker"):
        stepper.start_at(np.arange(1), np.zeros((1, 1)))
    assert workers.lives == lives


def test_a_world_with_workers_plays_what_one_without_plays():
    """In an environment without chance; episodes are as long and paid as much."""
    policy = softmax_table(jnp.zeros((1, 2), jnp.float32))
    worlds = [make_world(Counter, horizon=10, workers=n) for n in (None, 1)]
    ours, theirs = (rollout(world, policy, 3, key=jr.key(0)) for world in worlds)
    np.testing.assert_array_equal(ours.rewards, theirs.rewards)
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
