"""Environments whose every number says where it comes from."""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hyperirl.worlds import AbstractStepper, Stepped

LAST = 4  # An episode of `Counter` terminates in its fifth state.


class Counter(gymnasium.Env):
    """Sees how many steps it took; pays ten times that; ends itself or is cut."""

    observation_space = spaces.Box(0, 100, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, length=LAST, cut=False):
        self.length, self.cut, self.time = length, cut, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0], np.float32), {}

    def step(self, action):
        self.time += 1
        seen = np.array([self.time], np.float32)
        over = self.time == self.length
        return seen, 10.0 * self.time, over and not self.cut, over and self.cut, {}


class Echo(gymnasium.Env):
    """Pays what the action was, and starts somewhere at random."""

    observation_space = spaces.Box(-1, 1, (2,), np.float64)
    action_space = spaces.Box(-0.5, 0.5, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.np_random.uniform(-1, 1, 2), float(action[0]), False, False, {}


def vector(mode: AutoresetMode, lengths=(4, 4, 4), cut=False):
    """Counters whose episodes have these lengths."""
    makes = [lambda length=length: Counter(length, cut) for length in lengths]
    return SyncVectorEnv(makes, autoreset_mode=mode)


class TabularStepper(AbstractStepper):
    """A finite MDP in NumPy, so that what is learned in it can be judged exactly."""

    can_start_anywhere = True

    def __init__(self, mdp, num_envs):
        self.mdp, self.num_envs = mdp, num_envs
        self.observation_size, self.action_space = mdp.num_states, mdp.action_space
        self.states = np.zeros(num_envs, int)
        self.rewards = np.asarray(mdp.rewards)
        self.sums = np.cumsum(np.asarray(mdp.transitions, np.float64), axis=-1)
        self.first = np.asarray(mdp.initial, np.float64)
        self.first /= self.first.sum()

    def restart(self, ids, *, rng):
        self.rng = rng
        self.states[ids] = rng.choice(self.mdp.num_states, len(ids), p=self.first)

    def start_at(self, ids, observations):
        self.states[ids] = observations.argmax(axis=1)

    def observe(self):
        return np.eye(self.mdp.num_states)[self.states]

    def step(self, actions, *, idle=None):
        rewards = self.rewards[self.states, actions].astype(np.float64)
        sums = self.sums[self.states, actions]
        after = (sums < self.rng.random(self.num_envs)[:, None]).sum(axis=1)
        over = after == self.mdp.num_states
        self.states = np.where(over, self.states, after)
        return Stepped(self.observe(), rewards, over, np.zeros(self.num_envs, bool))
