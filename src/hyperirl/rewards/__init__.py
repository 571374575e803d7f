"""Reward functions of an observation and an action."""

from hyperirl.rewards.reward import AbstractReward as AbstractReward
from hyperirl.rewards.reward import LinearReward as LinearReward
from hyperirl.rewards.reward import MLPReward as MLPReward
from hyperirl.rewards.reward import QuadraticReward as QuadraticReward
from hyperirl.rewards.reward import TableReward as TableReward
from hyperirl.rewards.reward import fit_normalizer as fit_normalizer
from hyperirl.rewards.reward import mlp_reward as mlp_reward
from hyperirl.rewards.reward import rewards_of as rewards_of
