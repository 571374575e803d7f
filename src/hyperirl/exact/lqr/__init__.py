"""Exact answers for linear-quadratic problems (`hyperirl.environments.LQR`).

They hold for unclipped actions and episodes that no state ends; `max_action` and
`max_norm` of the environment are not looked at.
"""

from hyperirl.exact.lqr.closed import LQRClosedForm as LQRClosedForm
from hyperirl.exact.lqr.gradients import fisher as fisher
from hyperirl.exact.lqr.gradients import hypergradient as hypergradient
from hyperirl.exact.lqr.gradients import (
    implicit_hypergradient as implicit_hypergradient,
)
from hyperirl.exact.lqr.gradients import ml_irl_gradient as ml_irl_gradient
from hyperirl.exact.lqr.gradients import parameters as parameters
from hyperirl.exact.lqr.moments import Moments as Moments
from hyperirl.exact.lqr.moments import demo_moments as demo_moments
from hyperirl.exact.lqr.moments import divergence as divergence
from hyperirl.exact.lqr.moments import expected_return as expected_return
from hyperirl.exact.lqr.moments import gain_and_scale as gain_and_scale
from hyperirl.exact.lqr.moments import inner_loss as inner_loss
from hyperirl.exact.lqr.moments import moments as moments
from hyperirl.exact.lqr.moments import (
    negative_log_likelihood as negative_log_likelihood,
)
from hyperirl.exact.lqr.moments import optimality_gap as optimality_gap
from hyperirl.exact.lqr.riccati import SoftRiccati as SoftRiccati
from hyperirl.exact.lqr.riccati import riccati as riccati
from hyperirl.exact.lqr.riccati import soft_optimal_policy as soft_optimal_policy
from hyperirl.exact.lqr.riccati import soft_riccati as soft_riccati
from hyperirl.exact.lqr.riccati import true_reward as true_reward
