"""Exact answers for finite MDPs (`hyperirl.environments.Tabular`)."""

from hyperirl.exact.tabular.closed import TabularClosedForm as TabularClosedForm
from hyperirl.exact.tabular.episodes import enumerate_episodes as enumerate_episodes
from hyperirl.exact.tabular.losses import cross_derivative as cross_derivative
from hyperirl.exact.tabular.losses import fisher as fisher
from hyperirl.exact.tabular.losses import hypergradient as hypergradient
from hyperirl.exact.tabular.losses import (
    implicit_hypergradient as implicit_hypergradient,
)
from hyperirl.exact.tabular.losses import inner_loss as inner_loss
from hyperirl.exact.tabular.losses import ml_irl_gradient as ml_irl_gradient
from hyperirl.exact.tabular.losses import optimality_gap as optimality_gap
from hyperirl.exact.tabular.losses import outer_loss as outer_loss
from hyperirl.exact.tabular.solution import SoftValues as SoftValues
from hyperirl.exact.tabular.solution import (
    finite_soft_value_iteration as finite_soft_value_iteration,
)
from hyperirl.exact.tabular.solution import policy_value as policy_value
from hyperirl.exact.tabular.solution import reward_table as reward_table
from hyperirl.exact.tabular.solution import soft_optimal_policy as soft_optimal_policy
from hyperirl.exact.tabular.solution import soft_value_iteration as soft_value_iteration
from hyperirl.exact.tabular.visits import demo_weights as demo_weights
from hyperirl.exact.tabular.visits import occupancy as occupancy
from hyperirl.exact.tabular.visits import step_probabilities as step_probabilities
