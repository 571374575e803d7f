import jax.numpy as jnp

from hyperirl.learning.learner import Best, keep_best
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward


def run(losses):
    """The steps of the policy and of the reward that are kept, of windows of three."""
    number = lambda x: jnp.asarray(x, jnp.float32)
    reward = lambda step: TableReward(jnp.full((1, 1), step, jnp.float32))
    policy = lambda step: softmax_table(jnp.full((1, 1), step, jnp.float32))
    recent = jnp.full(3, jnp.nan, jnp.float32)
    infinite = number(jnp.inf)
    best = Best(infinite, policy(-1), recent, infinite, reward(-1))
    for step, nll in enumerate(losses):
        best = keep_best(best, number(nll), reward=reward(step), policy=policy(step))
    return int(best.policy.network.layers[0].weight[0, 0]), int(best.reward.table[0, 0])


def test_a_lucky_step_gives_the_policy_and_a_good_stretch_the_reward():
    """Means of three: 9, 5, 6.3, 6, 9, 7, 5, 3, 3.3."""
    assert run([9, 1, 9, 8, 10, 3, 2, 4, 4]) == (1, 7)


def test_before_there_are_enough_steps_their_mean_decides():
    assert run([5]) == (0, 0)
    assert run([5, 4]) == (1, 1)
    assert run([4, 5]) == (0, 0)
