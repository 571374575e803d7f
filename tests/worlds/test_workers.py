"""Shards of environments in other processes: the same numbers, also after a death."""

import functools
import os
import signal
import sys
import types

import jax
import jax.random as jr
import numpy as np
import pytest
from shards import RULES, assert_same, echoes, here, policy_of, robots, work
from toys import Counter

from hyperirl.policies import mlp_policy
from hyperirl.spaces import Box
from hyperirl.worlds import make_world
from hyperirl.worlds.acting import Starts
from hyperirl.worlds.engine import Engine, Rules
from hyperirl.worlds.processes import sharded
from hyperirl.worlds.workers import pack

MAKES = {"echoes": echoes, "robots": robots}


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


def test_shards_have_chance_of_their_own():
    engine = here(functools.partial(Engine, "echoes", echoes))
    paused = engine.start(4, RULES, key=jr.key(0))
    _, batch = engine.act(policy_of(engine), paused, 3, RULES, key=jr.key(1))
    for array in (batch.observations, batch.actions):
        assert not np.any(np.asarray(array[:, :2]) == np.asarray(array[:, 2:]))


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


def test_ray_must_be_running(monkeypatch):
    # A real one would keep the settings with which it is first imported.
    idle = types.SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", idle)
    with pytest.raises(ValueError, match="Ray is not running here"):
        make_world(Counter, horizon=10, workers=1, ray=True)


@pytest.mark.parametrize("workers", [-1, 2000])
def test_a_senseless_number_of_workers_is_refused(workers):
    with pytest.raises(ValueError, match="1024 workers at most"):
        make_world(Counter, horizon=10, workers=workers)
