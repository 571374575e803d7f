"""Reward functions of an observation and an action."""

from hyperirl.rewards.formulas import LinearReward as LinearReward
from hyperirl.rewards.formulas import QuadraticReward as QuadraticReward
from hyperirl.rewards.formulas import TableReward as TableReward
from hyperirl.rewards.mlp import MLPReward as MLPReward
from hyperirl.rewards.mlp import fit_normalizer as fit_normalizer
from hyperirl.rewards.mlp import mlp_reward as mlp_reward
from hyperirl.rewards.polynomial import PolynomialReward as PolynomialReward
from hyperirl.rewards.polynomial import polynomial_reward as polynomial_reward
from hyperirl.rewards.recorded import RecordedReward as RecordedReward
from hyperirl.rewards.recorded import recorded as recorded
from hyperirl.rewards.reward import AbstractReward as AbstractReward
from hyperirl.rewards.reward import rewards_of as rewards_of
from hyperirl.rewards.standalone import StandaloneReward as StandaloneReward
from hyperirl.rewards.standalone import standalone as standalone
