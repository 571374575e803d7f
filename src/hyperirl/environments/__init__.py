"""Environments: compiled and functional. `hyperirl.tasks` has them by name."""

from hyperirl.environments.cartpole import CartPole as CartPole
from hyperirl.environments.environment import AbstractEnvironment as AbstractEnvironment
from hyperirl.environments.environment import AbstractWorld as AbstractWorld
from hyperirl.environments.environment import Transition as Transition
from hyperirl.environments.lqr import LQR as LQR
from hyperirl.environments.lqr import random_lqr as random_lqr
from hyperirl.environments.pendulum import Pendulum as Pendulum
from hyperirl.environments.starts import OtherStarts as OtherStarts
from hyperirl.environments.tabular import Tabular as Tabular
from hyperirl.environments.tabular import grid_world as grid_world
from hyperirl.environments.tabular import random_mdp as random_mdp
