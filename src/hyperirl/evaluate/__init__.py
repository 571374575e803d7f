"""What a learned reward is worth: fresh policies, rankings, distances, transfer."""

from hyperirl.evaluate.distance import Coverage as Coverage
from hyperirl.evaluate.distance import coverage as coverage
from hyperirl.evaluate.distance import epic_distance as epic_distance
from hyperirl.evaluate.evaluate import evaluate as evaluate
from hyperirl.evaluate.evaluate import evaluate_policy as evaluate_policy
from hyperirl.evaluate.evaluate import ranking_of_demos as ranking_of_demos
from hyperirl.evaluate.fresh import Curve as Curve
from hyperirl.evaluate.fresh import Fresh as Fresh
from hyperirl.evaluate.fresh import Training as Training
from hyperirl.evaluate.fresh import default_policy as default_policy
from hyperirl.evaluate.fresh import measure as measure
from hyperirl.evaluate.fresh import policies_like as policies_like
from hyperirl.evaluate.fresh import retraining_ratios as retraining_ratios
from hyperirl.evaluate.fresh import steps_to_reach as steps_to_reach
from hyperirl.evaluate.fresh import train_fresh as train_fresh
from hyperirl.evaluate.fresh import usual_budget as usual_budget
from hyperirl.evaluate.picture import picture as picture
from hyperirl.evaluate.ranking import RankCorrelation as RankCorrelation
from hyperirl.evaluate.ranking import RankingSet as RankingSet
from hyperirl.evaluate.ranking import constant_control as constant_control
from hyperirl.evaluate.ranking import rank_correlation as rank_correlation
from hyperirl.evaluate.ranking import ranking_set as ranking_set
from hyperirl.evaluate.ranking import spearman as spearman
from hyperirl.evaluate.ranking import untrained as untrained
from hyperirl.evaluate.ranking import untrained_control as untrained_control
from hyperirl.evaluate.transfer import changed_dynamics as changed_dynamics
