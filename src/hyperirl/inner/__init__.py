"""Inner solvers: policies that minimize `L_inner` for a given reward."""

from hyperirl.inner.gap import true_reward as true_reward
from hyperirl.inner.ppo import PPO as PPO
from hyperirl.inner.ppo import PPOState as PPOState
from hyperirl.inner.solver import AbstractInnerSolver as AbstractInnerSolver
from hyperirl.inner.solver import Report as Report
from hyperirl.inner.solver import Reward as Reward
