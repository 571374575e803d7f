"""The gradient of the demonstrations' likelihood with respect to the reward."""

from hyperirl.hypergradient.cross import AbstractCross as AbstractCross
from hyperirl.hypergradient.cross import Adjoint as Adjoint
from hyperirl.hypergradient.cross import Centred as Centred
from hyperirl.hypergradient.cross import Raw as Raw
from hyperirl.hypergradient.estimate import MLIRL as MLIRL
from hyperirl.hypergradient.estimate import AbstractEstimator as AbstractEstimator
from hyperirl.hypergradient.estimate import Diagnostics as Diagnostics
from hyperirl.hypergradient.estimate import Estimate as Estimate
from hyperirl.hypergradient.estimate import Fisher as Fisher
from hyperirl.hypergradient.estimate import ml_irl_gradient as ml_irl_gradient
from hyperirl.hypergradient.exact import Exact as Exact
from hyperirl.hypergradient.exact import MaxEnt as MaxEnt
from hyperirl.hypergradient.natural import NaturalStep as NaturalStep
from hyperirl.hypergradient.outer import outer_gradient as outer_gradient
from hyperirl.hypergradient.outer import outer_loss as outer_loss
from hyperirl.hypergradient.outer import policy_nll as policy_nll
from hyperirl.hypergradient.parl import PARL as PARL
from hyperirl.hypergradient.penalty import Penalty as Penalty
from hyperirl.hypergradient.running_fisher import RunningFisher as RunningFisher
from hyperirl.hypergradient.soft_bellman import SoftBellman as SoftBellman
