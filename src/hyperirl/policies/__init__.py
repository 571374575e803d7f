"""Policies, and the distributions over actions they are made of."""

from hyperirl.policies.actor import AbstractActor as AbstractActor
from hyperirl.policies.censored import CensoredGaussian as CensoredGaussian
from hyperirl.policies.censored import CensoredHead as CensoredHead
from hyperirl.policies.censored import touches_bounds as touches_bounds
from hyperirl.policies.distributions import AbstractDistribution as AbstractDistribution
from hyperirl.policies.distributions import Categorical as Categorical
from hyperirl.policies.distributions import Gaussian as Gaussian
from hyperirl.policies.distributions import SquashedGaussian as SquashedGaussian
from hyperirl.policies.heads import AbstractHead as AbstractHead
from hyperirl.policies.heads import CategoricalHead as CategoricalHead
from hyperirl.policies.heads import GaussianHead as GaussianHead
from hyperirl.policies.policy import AbstractPolicy as AbstractPolicy
from hyperirl.policies.policy import Policy as Policy
from hyperirl.policies.policy import linear_gaussian as linear_gaussian
from hyperirl.policies.policy import log_probs as log_probs
from hyperirl.policies.policy import mlp_policy as mlp_policy
from hyperirl.policies.policy import softmax_table as softmax_table
