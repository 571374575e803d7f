"""What shards do in tests, here and elsewhere."""

import cloudpickle
import jax
import jax.random as jr
import numpy as np
from toys import Echo

from hyperirl.policies import mlp_policy
from hyperirl.worlds.engine import Rules
from hyperirl.worlds.gym import copies
from hyperirl.worlds.robots import InvertedPendulum
from hyperirl.worlds.workers import Here, ShardedEngine

NUM_ENVS, NUM_STEPS = 5, 12
RULES = Rules(horizon=8)


def echoes(num_envs):
    return copies(Echo, num_envs)


def robots(num_envs):
    from hyperirl.worlds.mujoco import MujocoStepper

    return MujocoStepper(InvertedPendulum(), num_envs, num_threads=1)


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
