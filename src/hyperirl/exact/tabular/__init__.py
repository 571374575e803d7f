"""Exact answers for finite MDPs (`hyperirl.environments.Tabular`)."""

from hyperirl.exact.tabular.solution import SoftValues as SoftValues
from hyperirl.exact.tabular.solution import (
    finite_soft_value_iteration as finite_soft_value_iteration,
)
from hyperirl.exact.tabular.solution import policy_value as policy_value
from hyperirl.exact.tabular.solution import reward_table as reward_table
from hyperirl.exact.tabular.solution import soft_optimal_policy as soft_optimal_policy
from hyperirl.exact.tabular.solution import soft_value_iteration as soft_value_iteration
