"""Rewards and policies for those who have NumPy and nothing else."""

from hyperirl.export.folder import export as export
from hyperirl.export.hyperirl_numpy import ExportError as ExportError
from hyperirl.export.in_memory import RewardFunction as RewardFunction
from hyperirl.export.in_memory import numpy_policy as numpy_policy
from hyperirl.export.in_memory import numpy_reward as numpy_reward
from hyperirl.export.in_memory import reward_function as reward_function
