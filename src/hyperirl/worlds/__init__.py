"""Worlds that are not compiled: Gymnasium's environments, and MuJoCo's in batches."""

from hyperirl.worlds.gym import GymStepper as GymStepper
from hyperirl.worlds.gym import VectorStepper as VectorStepper
from hyperirl.worlds.making import make_world as make_world
from hyperirl.worlds.making import variants_of as variants_of
from hyperirl.worlds.stepper import AbstractStepper as AbstractStepper
from hyperirl.worlds.stepper import Stepped as Stepped
from hyperirl.worlds.world import SteppedWorld as SteppedWorld
