"""Shards of environments in other processes: the same numbers, also after a death."""

import functools
import os
import signal

import cloudpickle
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from toys import Counter, Echo

from hyperirl.policies import mlp_policy
from hyperirl.rollout import rollout
from hyperirl.spaces import Box
from hyperirl.worlds import make_world
from hyperirl.worlds.acting import Starts
from hyperirl.worlds.engine import Engine, Rules
from hyperirl.worlds.gym import copies
from hyperirl.worlds.processes import sharded
from hyperirl.worlds.robots import InvertedPendulum
from hyperirl.worlds.workers import Here, ShardedEngine, pack

NUM_ENVS, NUM_STEPS = 5, 12
RULES = Rules(horizon=8)


def echoes(num_envs):
    return copies(Echo, num_envs)


def robots(num_envs):
    from hyperirl.worlds.mujoco import MujocoStepper

    return MujocoStepper(InvertedPendulum(), num_envs, num_threads=1)


MAKES = {"echoes": echoes, "robots": robots}


def here(make):
    packed = cloudpickle.dumps(make)
    return ShardedEngine("here", [Here(packed), Here(packed)])


def policy_of(engine, key=0):
    size, space = engine.facts.observation_size, engine.facts.action_space
    return mlp_policy(size, space, hidden=(8,), squash=True, key=jr.key(key))


def work(engine, before=None):
    """Two updates and some episodes; `before` is called before the second update."""
    paused = engine.start(NUM_ENVS, RULES, key=jr.key(1))
    found = [paused]
    for update in range(2):
        if update and before is not None:
            before()
        policy, key = policy_of(engine, update), jr.key(2 + update)
        paused, batch = engine.act(policy, paused, NUM_STEPS, RULES, key=key)
        found += [paused, batch]
    return [*found, engine.play(policy_of(engine), 3, RULES, key=jr.key(4))]


def assert_same(ours, theirs):
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module", params=MAKES)
def made(request):
    """Process workers, and what is done without them."""
    if request.param == "robots":
        pytest.importorskip("mujoco.batch")
    make = functools.partial(Engine, request.param, MAKES[request.param])
    engine = sharded(request.param, make, 2)
    yield engine, work(here(make))
    for worker in engine.workers:
        worker.close()


def test_processes_do_what_shards_here_do(made):
    engine, expected = made
    assert_same(work(engine), expected)


def test_a_worker_that_is_killed_costs_its_shard_at_most(made):
    """Where states can be set, nothing at all; the other shard never."""
    engine, expected = made
    saved = engine.facts.can_save

    def kill():
        process = engine.workers[1].process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    fate = "what it was doing is done again" if saved else "begin new episodes"
    with pytest.warns(RuntimeWarning, match=f"Worker 1 died and was replaced.*{fate}"):
        found = work(engine, kill)
    assert_same(found[:3], expected[:3])
    assert_same(found[-1], expected[-1])  # Episodes start anew anyway.
    batch, theirs = found[4], expected[4]
    kept = slice(None) if saved else slice(3)
    assert_same(batch.observations[:, kept], theirs.observations[:, kept])
    assert_same(batch.actions[:, kept], theirs.actions[:, kept])
    if not saved:
        assert np.asarray(batch.times[0]).tolist()[3:] == [0, 0]


def test_a_shard_starts_elsewhere_too(made):
    engine, _ = made
    if not engine.facts.can_start_anywhere:
        pytest.skip("Only robots can.")
    there = np.full((1, engine.facts.observation_size), 0.05)
    rules = Rules(8, Starts(there, 1.0))
    played = engine.play(policy_of(engine), 4, rules, key=jr.key(0))
    np.testing.assert_allclose(played.observations[:, 0], np.tile(there, (4, 1)))


def test_an_environment_that_fails_is_told_and_not_restarted(made):
    """The other shard's answer is not taken for that of the next call."""
    engine, expected = made
    alive = [worker.process.pid for worker in engine.workers]
    wrong = mlp_policy(7, Box(1, -1.0, 1.0), hidden=(8,), key=jr.key(0))
    with pytest.raises(RuntimeError, match="failed in a worker"):
        engine.play(wrong, 3, RULES, key=jr.key(4))
    assert_same(engine.play(policy_of(engine), 3, RULES, key=jr.key(4)), expected[-1])
    assert [worker.process.pid for worker in engine.workers] == alive


def test_an_answer_that_nobody_waited_for_is_not_taken_for_another(made):
    engine, expected = made
    engine.workers[0].ask("facts")  # And then Ctrl-C.
    assert_same(engine.play(policy_of(engine), 3, RULES, key=jr.key(4)), expected[-1])


def test_a_policy_that_is_sent_again_is_not_compiled_again():
    engine = Engine("echoes", echoes)
    before, after = (pack(policy_of(engine, key)) for key in range(2))
    assert before.frame == after.frame
    treedef = lambda policy: jax.tree.structure(policy)
    assert treedef(before.policy()) == treedef(after.policy())


def test_what_cannot_be_made_there_is_told():
    """As an error of the environment, and not as a death."""

    def missing():
        raise ModuleNotFoundError("No simulator here.")

    with pytest.raises(RuntimeError, match="No simulator here"):
        here(missing)


def test_a_world_with_workers_plays_what_one_without_plays():
    """In an environment without chance; episodes are as long and paid as much."""
    policy = mlp_policy(1, make_world(Counter, horizon=10).action_space, key=jr.key(0))
    worlds = [make_world(Counter, horizon=10, workers=n) for n in (0, 1)]
    ours, theirs = (rollout(world, policy, 3, key=jr.key(0)) for world in worlds)
    np.testing.assert_array_equal(ours.rewards, theirs.rewards)
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
    assert isinstance(theirs.rewards, jnp.ndarray)


def test_ray_must_be_running():
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match="Ray is not running here"):
        make_world(Counter, horizon=10, workers=1, ray=True)


@pytest.mark.parametrize("workers", [-1, 2000])
def test_a_senseless_number_of_workers_is_refused(workers):
    with pytest.raises(ValueError, match="1024 workers at most"):
        make_world(Counter, horizon=10, workers=workers)
