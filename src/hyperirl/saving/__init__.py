"""Rewards and policies in files that can be shared."""

from hyperirl.saving.errors import SavingError as SavingError
from hyperirl.saving.files import load_policy as load_policy
from hyperirl.saving.files import load_reward as load_reward
from hyperirl.saving.files import save_policy as save_policy
from hyperirl.saving.files import save_reward as save_reward
