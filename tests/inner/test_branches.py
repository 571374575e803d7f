"""Advantages from what every action would have led to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from inner_problems import MDP, PROBLEM, SOMEHOW, logits

from hyperirl.environments import CartPole, Pendulum
from hyperirl.exact.tabular.solution import kernel
from hyperirl.inner.acting import act, start
from hyperirl.inner.critic import critic
from hyperirl.inner.report import rewards_paid, soft_values
from hyperirl.policies import mlp_policy
from hyperirl.rewards import TableReward


def play(environment, policy, num_envs, num_steps):
    actors = start(environment, num_envs, key=jr.key(0))
    go = eqx.filter_jit(lambda a: act(environment, policy, a, num_steps, key=jr.key(1)))
    return go(actors)[1]


@pytest.mark.parametrize("name", ["cartpole", "tabular"])
def test_the_branch_of_the_action_taken_is_what_happened(name):
    """Also where the dynamics are random: all branches share the step's noise."""
    environment, policy = MDP, SOMEHOW
    if name == "cartpole":
        environment = CartPole()
        policy = mlp_policy(4, environment.action_space, key=jr.key(2), hidden=(8,))
    batch = play(environment, policy, 16, 100)
    assert batch.branches is not None and batch.terminated.any()
    chosen = batch.actions[..., None]
    of_choice = jnp.take_along_axis(
        batch.branches.observations, chosen[..., None], axis=2
    )
    np.testing.assert_allclose(
        of_choice[:, :, 0], batch.next_observations, rtol=1e-6, atol=1e-6
    )
    over = jnp.take_along_axis(batch.branches.terminated, chosen, axis=2)
    np.testing.assert_array_equal(over[:, :, 0], batch.terminated)
    others = jnp.any(batch.branches.observations != of_choice, axis=(2, 3))
    assert others.mean() > 0.5


def test_vectors_cannot_all_be_tried():
    pendulum = Pendulum()
    policy = mlp_policy(3, pendulum.action_space, key=jr.key(2), hidden=(8,))
    assert play(pendulum, policy, 4, 5).branches is None


def test_branches_keep_the_mean_of_advantages_and_lower_their_variance():
    """Oracle: `Q - alpha log pi - V` of the policy, exact.

    Fails if the mean over actions forgets the entropy or the discount.
    """
    batch = play(MDP, SOMEHOW, 64, 400)
    blank = critic(MDP.observation_size, (4,), key=jr.key(3))

    @eqx.filter_jit
    def advantages(batch):
        trace = jnp.float32(0.9)
        reward = TableReward(MDP.rewards)
        return soft_values(
            blank,
            rewards_paid(reward, batch),
            SOMEHOW,
            batch,
            PROBLEM,
            trace=trace,
            num_fits=40,
        ).advantages

    plain = advantages(eqx.tree_at(lambda b: b.branches, batch, None))
    branched = advantages(batch)

    alpha, gamma = float(PROBLEM.temperature), float(PROBLEM.discount)
    log_pi = np.asarray(jax.nn.log_softmax(logits(SOMEHOW).astype(jnp.float64)))
    rewards = np.asarray(MDP.rewards, np.float64)
    next_given = np.asarray(kernel(MDP))
    soft = rewards - alpha * log_pi
    flow = np.einsum("sa,sat->st", np.exp(log_pi), next_given)
    mean_soft = np.sum(np.exp(log_pi) * soft, axis=1)
    values = np.linalg.solve(np.eye(len(flow)) - gamma * flow, mean_soft)
    truth = soft + gamma * next_given @ values - values[:, None]

    states = np.asarray(jnp.argmax(batch.observations, -1))
    actions = np.asarray(batch.actions)
    for state in range(len(truth)):
        for action in range(truth.shape[1]):
            here = (states == state) & (actions == action)
            here[-40:] = False  # Their sums are cut by the end of the batch.
            sample = np.asarray(branched)[here]
            # Neighbors in time share rewards: about ten steps make one draw.
            error = np.std(sample) / np.sqrt(here.sum() / 10)
            assert abs(np.mean(sample) - truth[state, action]) < 4 * error
    noise = lambda found: np.mean((np.asarray(found) - truth[states, actions]) ** 2)
    # What the random transitions add is in both.
    assert noise(branched) < 0.65 * noise(plain)
