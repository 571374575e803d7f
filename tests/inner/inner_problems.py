"""The small problems that the tests of the inner solvers share.

Sharing them also shares the compiled programs, which is where the time goes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hyperirl import exact
from hyperirl.environments import random_mdp
from hyperirl.inner import PPO, SAC, Reinforce
from hyperirl.policies import softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import AbstractReward, TableReward


class Counter(list):
    """A list that is the same for JAX whatever it holds."""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class CountedReward(AbstractReward):
    """Notes every time Python runs it: that is, every time it is traced."""

    table: TableReward
    traces: Counter = eqx.field(static=True)

    def value(self, observation, action):
        self.traces.append(None)
        return self.table(observation, action)


MDP = random_mdp(4, 3, key=jr.key(0), stop=0.02, horizon=60)
PROBLEM = problem(temperature=1.0, discount=0.9)
TRACES = Counter()
REWARD = CountedReward(TableReward(MDP.rewards), TRACES)
UNIFORM = softmax_table(jnp.zeros(MDP.rewards.shape, jnp.float32))
SOMEHOW = softmax_table(jr.normal(jr.key(1), MDP.rewards.shape, jnp.float32))

PPO_SOLVER = PPO(num_envs=32, num_steps=64, learning_rate=0.03)
SAC_SOLVER = SAC(
    num_envs=16,
    num_gradients=2,
    capacity=16_384,
    learning_rate=0.02,
    critic_rate=3e-3,
    hidden=(32,),
)
REINFORCE_SOLVER = Reinforce(num_episodes=64, learning_rate=0.05)


def logits(policy):
    return policy.network.layers[0].weight.T


@jax.jit
def worst_kl(table):
    """The largest KL from the soft-optimal policy over all states."""
    best = exact.tabular.soft_value_iteration(MDP, MDP.rewards, PROBLEM).logits
    log_pi = jax.nn.log_softmax(table.astype(jnp.float64))
    return jnp.max(jnp.sum(jnp.exp(log_pi) * (log_pi - best), axis=1))
