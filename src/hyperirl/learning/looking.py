"""What is only looked at while learning: the true reward. It decides nothing.

It is a program of its own, so that the outer step is the same one where the true reward
is not known.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.ranking import rank_correlation
from hyperirl.inner import true_reward
from hyperirl.metrics import StepMetrics
from hyperirl.rewards import AbstractReward, rewards_of, standalone
from hyperirl.trajectories import Trajectories, returns


class Look(eqx.Module):
    """The true return of the agent, and how the learned reward ranks trajectories."""

    environment: AbstractWorld
    ranking: Trajectories  # With their true rewards.
    temperature: Float[Array, ""]

    def __call__(
        self, metrics: StepMetrics, reward: AbstractReward, agent: Trajectories
    ) -> StepMetrics:
        """The metrics of a step, with both.

        Args:
            metrics: Those that the step knows.
            reward: The one that the agent was trained on.
            agent: Its trajectories.
        """
        found = _look(self, reward, agent)
        where = lambda m: (m.true_return, m.rank_corr)
        return eqx.tree_at(where, metrics, found, is_leaf=lambda leaf: leaf is None)


@eqx.filter_jit
def _look(look: Look, reward: AbstractReward, agent: Trajectories):
    environment = look.environment
    alone = standalone(reward, environment.action_space, look.temperature)
    true = returns(agent, rewards_of(true_reward(environment), agent))
    return jnp.mean(true), rank_correlation(alone, look.ranking).total
