"""Exact answers for linear-quadratic problems (`hyperirl.environments.LQR`).

They hold for unclipped actions and episodes that no state ends; `max_action` and
`max_norm` of the environment are not looked at.
"""

from hyperirl.exact.lqr.riccati import SoftRiccati as SoftRiccati
from hyperirl.exact.lqr.riccati import riccati as riccati
from hyperirl.exact.lqr.riccati import soft_optimal_policy as soft_optimal_policy
from hyperirl.exact.lqr.riccati import soft_riccati as soft_riccati
from hyperirl.exact.lqr.riccati import true_reward as true_reward
