"""What a run should say of itself, in plain sentences."""

from hyperirl.verdict.estimate import Estimate as Estimate
from hyperirl.verdict.estimate import number as number
from hyperirl.verdict.judgement import Judgement as Judgement
from hyperirl.verdict.judgement import judgement_of as judgement_of
from hyperirl.verdict.warning import warnings_of as warnings_of
