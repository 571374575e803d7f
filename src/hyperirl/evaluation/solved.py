"""The policy a reward asks for, where it can be computed instead of trained.

A fresh policy has the luck and the budget of its training in it. Where the soft-optimal
policy has a closed form, there is neither.
"""

import equinox as eqx

from hyperirl import exact
from hyperirl.environments import AbstractWorld
from hyperirl.inner import Reward
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem


@eqx.filter_jit
def solved_policy(
    environment: AbstractWorld, reward: Reward, problem: Problem
) -> AbstractPolicy | None:
    """The soft-optimal policy in closed form; None where only training helps.

    Solved in double precision, and returned in the environment's.
    """
    closed = exact.closed_form(environment)
    if closed is None or not closed.handles(reward):
        return None
    return closed.optimal_policy(reward, problem)
