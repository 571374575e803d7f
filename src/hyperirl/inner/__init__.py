"""Inner solvers: policies that minimize `L_inner` for a given reward."""

from hyperirl.inner.budgets import Budget as Budget
from hyperirl.inner.budgets import Progress as Progress
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
from hyperirl.inner.solver import Report as Report
from hyperirl.inner.solver import Reward as Reward
from hyperirl.inner.train import Point as Point
from hyperirl.inner.train import Training as Training
from hyperirl.inner.train import default_policy as default_policy
from hyperirl.inner.train import train as train
