"""Rewards for Gymnasium's CartPole, and functions that look at everything."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl.networks import Normalizer
from hyperirl.rewards import StandaloneReward, mlp_reward
from hyperirl.spaces import Discrete


def cartpole_reward():
    """One that differs from step to step."""
    ones = jnp.ones(4, jnp.float32)
    reward = mlp_reward(4, Discrete(2), key=jr.key(0), hidden=(8,))
    layer = reward.network.layers[-1]
    object.__setattr__(layer, "weight", layer.weight * 100)  # Fresh ones are flat.
    object.__setattr__(reward, "normalizer", Normalizer(0 * ones, ones / 10))
    return StandaloneReward(reward, 0.5)


class Recorder:
    """A function as `imitation` has them, which keeps what it is given."""

    def __init__(self):
        self.calls = []

    def __call__(self, state, action, next_state, done):
        self.calls.append([np.array(x) for x in (state, action, next_state, done)])
        return state[:, 0] + 10 * action + 100 * next_state[:, 0]
