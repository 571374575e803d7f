"""Rollouts agree with the exact answers: fixed keys, bounds of 5 standard errors.

Each docstring names changes to the code under which the test was seen to fail.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hyperirl.environments import LQR
from hyperirl.exact import lqr as exact_lqr
from hyperirl.exact import tabular
from hyperirl.policies import log_probs, softmax_table
from hyperirl.problem import Problem
from hyperirl.rollout import rollout
from hyperirl.trajectories import returns


def standard_errors(samples, expected):
    """How many standard errors the means of the samples are away, at most."""
    spread = jnp.std(samples, axis=0) / jnp.sqrt(jnp.float64(len(samples)))
    return jnp.max(jnp.abs(jnp.mean(samples, axis=0) - expected) / spread)


@eqx.filter_jit
def visits(tiny, key):
    policy, gamma = softmax_table(tiny.logits), tiny.problem.discount
    episodes = rollout(tiny.mdp, policy, 4000, key=key, horizon=12)
    table = lambda episode: tabular.demo_weights(
        jax.tree.map(lambda leaf: leaf[None], episode), gamma, 2
    )
    expected = tabular.occupancy(tiny.mdp, tiny.logits, gamma, horizon=12)
    return jax.vmap(table)(episodes), expected


def test_rollouts_visit_states_and_actions_as_often_as_they_should(tiny):
    """Discounted visits of 4000 episodes of 12 steps, some of which end early.

    Fails without the discount, or with transitions transposed, in `occupancy`.
    """
    assert standard_errors(*visits(tiny, jr.key(0))) < 5


@eqx.filter_jit
def returns_and_surprises(lqr, problem, key):
    reward = exact_lqr.true_reward(lqr)
    expert = exact_lqr.soft_optimal_policy(lqr, reward, problem)
    wider = eqx.tree_at(lambda policy: policy.free, expert, expert.free + 0.2)
    episodes = rollout(lqr, expert, 4000, key=key)
    assert episodes.rewards is not None
    surprise = -log_probs(wider, episodes)
    samples, expected = [], []
    for discount in (1.0, 0.99):
        behavior = exact_lqr.moments(lqr, expert, discount, horizon=100)
        samples.append(returns(episodes, episodes.rewards, discount))
        expected.append(exact_lqr.expected_return(reward, behavior))
        samples.append(returns(episodes, surprise, discount))
        expected.append(exact_lqr.negative_log_likelihood(wider, behavior))
    stacked = jnp.stack(samples, axis=1).astype(jnp.float64)
    return stacked, jnp.stack(expected)


def test_lqr_rollouts_have_the_expected_return_and_likelihood():
    """The paper's system, undiscounted, and discounted over 100 steps.

    4000 episodes of the expert, and their likelihood under a policy with wider spread.
    Fails if `moments` drops the discount, the noise or the spread.
    """
    problem = Problem(jnp.float64(0.1), jnp.float64(0.99))
    samples, expected = returns_and_surprises(LQR(), problem, jr.key(0))
    assert standard_errors(samples, expected) < 5
