"""The policy a reward asks for, where it can be computed instead of trained.

A fresh policy has the luck and the budget of its training in it. Where the soft-optimal
policy has a closed form, there is neither.
"""

import math

import equinox as eqx

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, Tabular
from hyperirl.inner import Reward
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import AbstractReward, QuadraticReward


@eqx.filter_jit
def solved_policy(
    environment: AbstractEnvironment, reward: Reward, problem: Problem
) -> AbstractPolicy | None:
    """The soft-optimal policy of a finite MDP, or of LQR with a quadratic reward.

    `None` where only training helps. In double precision it is exact; it is returned in
    the environment's.
    """
    match environment, reward:
        case Tabular(), AbstractReward():
            return exact.tabular.soft_optimal_policy(environment, reward, problem)
        case LQR(max_action=math.inf, max_norm=math.inf), QuadraticReward():
            return exact.lqr.soft_optimal_policy(environment, reward, problem)
    return None
