"""Inner solvers: policies that minimize `L_inner` for a given reward."""

from hyperirl.inner.annealing import Chunk as Chunk
from hyperirl.inner.annealing import chunks as chunks
from hyperirl.inner.budgets import SolveBudget as SolveBudget
from hyperirl.inner.budgets import SolveProgress as SolveProgress
from hyperirl.inner.budgets import solve_until as solve_until
from hyperirl.inner.exact import Exact as Exact
from hyperirl.inner.exact import true_reward as true_reward
from hyperirl.inner.ppo import PPO as PPO
from hyperirl.inner.ppo import PPOState as PPOState
from hyperirl.inner.ppo import ppo_for as ppo_for
from hyperirl.inner.reinforce import LeaveOneOut as LeaveOneOut
from hyperirl.inner.reinforce import Reinforce as Reinforce
from hyperirl.inner.reinforce import ReinforceState as ReinforceState
from hyperirl.inner.reinforce import RunningMean as RunningMean
from hyperirl.inner.sac import SAC as SAC
from hyperirl.inner.sac import SACState as SACState
from hyperirl.inner.solver import AbstractInnerSolver as AbstractInnerSolver
from hyperirl.inner.solver import Reward as Reward
from hyperirl.inner.solver import SolveReport as SolveReport
from hyperirl.inner.train import Point as Point
from hyperirl.inner.train import TrainedPolicy as TrainedPolicy
from hyperirl.inner.train import policy_for as policy_for
from hyperirl.inner.train import train as train
