"""Closed forms are asked for, and agree with the exact answers they are made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import exact
from hyperirl.environments import LQR, AbstractEnvironment, OtherStarts
from hyperirl.policies import softmax_table
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import TableReward, mlp_reward
from hyperirl.rollout import rollout
from hyperirl.tasks import make

ROUNDING = 1e-10


@pytest.mark.parametrize("name", ["tabular", "grid-world", "lqr"])
def test_finite_mdps_and_lqr_have_a_closed_form_that_holds_the_true_reward(name):
    environment = make(name).environment
    closed = exact.closed_form(environment)
    assert closed is not None
    reward = closed.true_reward()
    assert closed.handles(reward)
    episodes = rollout(environment, closed.blank_policy(), 2, key=jr.key(0), horizon=5)
    for observation, action in zip(
        episodes.observations[0], episodes.actions[0], strict=False
    ):
        found, true = reward(observation, action), environment.reward
        np.testing.assert_allclose(found, true(observation, action), rtol=1e-5)


def other_starts():
    task = make("tabular").environment
    return OtherStarts(
        task=task,
        observations=jnp.eye(8, dtype=jnp.float32),
        count=jnp.int32(8),
        chance=jnp.float32(0.5),
        horizon=10,
    )


@pytest.mark.parametrize(
    "environment",
    [
        make("cartpole").environment,
        make("pendulum").environment,
        LQR(max_action=5.0),
        LQR(max_norm=50.0),
        other_starts(),
    ],
    ids=["cartpole", "pendulum", "clipped", "ended", "other starts"],
)
def test_other_environments_have_none(environment):
    """Clipping is not linear; visits from other starts are not those of the task."""
    assert exact.closed_form(environment) is None
    with pytest.raises(ValueError, match=f"This {type(environment).__name__} has no"):
        exact.require_closed_form(environment)


def test_another_environment_registers_its_own():
    mdp = make("tabular").environment

    class Wrapped(AbstractEnvironment):
        task: AbstractEnvironment
        horizon: int = eqx.field(static=True, default=10)

        observation_size = property(lambda self: self.task.observation_size)
        action_space = property(lambda self: self.task.action_space)

        def reset(self, *, key):
            return self.task.reset(key=key)

        def observe(self, state):
            return self.task.observe(state)

        def state_of(self, observation):
            return self.task.state_of(observation)

        def reward(self, observation, action):
            return self.task.reward(observation, action)

        def advance(self, state, action, *, key):
            return self.task.advance(state, action, key=key)

    assert exact.closed_form(Wrapped(mdp)) is None
    exact.closed_form.register(Wrapped)(lambda wrapped: exact.closed_form(wrapped.task))
    assert isinstance(exact.closed_form(Wrapped(mdp)), exact.tabular.TabularClosedForm)


def test_lqr_handles_quadratic_rewards_only_and_finite_mdps_any():
    lqr, mdp = make("lqr").environment, make("tabular").environment
    network = lambda env: mlp_reward(
        env.observation_size, env.action_space, key=jr.key(0)
    )
    assert not exact.require_closed_form(lqr).handles(network(lqr))
    assert not exact.require_closed_form(lqr).handles(lqr.reward)
    assert exact.require_closed_form(mdp).handles(network(mdp))
    assert exact.require_closed_form(mdp).handles(mdp.reward)


def test_a_finite_mdps_standing_is_that_of_its_losses(finite, close):
    """Fails with a sign, the discount or the old and the new policy exchanged."""
    mdp, problem = finite.mdp, finite.problem
    closed, reward = exact.require_closed_form(mdp), TableReward(finite.reward)
    policy = softmax_table(finite.logits)
    before = softmax_table(finite.reward)
    standing = eqx.filter_jit(closed.judge)(policy, before, reward, problem)
    loss = lambda x: exact.tabular.inner_loss(mdp, x, finite.reward, problem)
    gap = exact.tabular.optimality_gap(mdp, finite.logits, finite.reward, problem)
    visits = exact.tabular.occupancy(mdp, finite.logits, problem.discount)
    share, log = visits / visits.sum(), jax.nn.log_softmax
    kl = share * (log(finite.logits) - log(finite.reward))
    gradient = jnp.linalg.norm(jax.grad(loss)(finite.logits))
    close(standing.inner_loss, loss(finite.logits), ROUNDING)
    close(standing.gradient_norm, gradient, ROUNDING)
    close(standing.gap, gap, ROUNDING)
    close(standing.entropy, -jnp.sum(share * log(finite.logits)), ROUNDING)
    close(standing.kl, jnp.sum(kl), ROUNDING)
    close(closed.gap(policy, reward, problem), gap, ROUNDING)


def test_a_linear_systems_standing_is_that_of_its_losses(quadratic, close):
    """Fails with a sign, the discount or the old and the new policy exchanged.

    The mean KL is that of every step of many, in the limit: the excess of the cross
    entropy over the entropy, both from the same moments.
    """
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    closed = exact.require_closed_form(lqr)
    policy = closed.optimal_policy(closed.true_reward(), problem)
    before = closed.optimal_policy(reward, problem)
    standing = eqx.filter_jit(closed.judge)(policy, before, reward, problem)
    loss = lambda policy: exact.lqr.inner_loss(lqr, policy, reward, problem)
    own = exact.lqr.moments(lqr, policy, problem.discount)
    nll = lambda policy: exact.lqr.negative_log_likelihood(policy, own) / own.weight
    gradient = jax.tree.leaves(eqx.filter_grad(loss)(policy))
    norm = np.linalg.norm(np.concatenate([np.ravel(leaf) for leaf in gradient]))
    close(standing.inner_loss, loss(policy), ROUNDING)
    close(standing.gradient_norm, norm, ROUNDING)
    close(standing.gap, loss(policy) - loss(before), ROUNDING)  # It is the best.
    close(standing.entropy, nll(policy), ROUNDING)
    close(standing.kl, nll(before) - nll(policy), ROUNDING)
    assert closed.gap(policy, reward, problem) is None


def test_the_hypergradient_of_a_network_on_a_finite_mdp_is_finite_differences(finite):
    """Fails without the way back from the table to the network's parameters."""
    mdp, problem = finite.mdp, finite.problem
    closed = exact.require_closed_form(mdp)
    reward = mlp_reward(
        5, mdp.action_space, key=jr.key(0), hidden=(3,), dtype=jnp.float64
    )
    demos = rollout(mdp, softmax_table(finite.logits), 4, key=jr.key(1), horizon=6)
    weights = exact.tabular.demo_weights(demos, problem.discount, 3)

    @eqx.filter_jit
    def loss(reward):
        policy = closed.optimal_policy(reward, problem)
        return exact.tabular.outer_loss(policy.network.layers[0].weight.T, weights)

    where = lambda r: r.network.layers[0].weight
    slope = jnp.ones_like(where(reward))
    moved = lambda by: eqx.tree_at(where, reward, where(reward) + by * slope)
    expected = (loss(moved(1e-4)) - loss(moved(-1e-4))) / 2e-4
    h = eqx.filter_jit(closed.hypergradient)(reward, demos, problem)
    np.testing.assert_allclose(jnp.sum(where(h) * slope), expected, rtol=1e-5)


def test_the_hypergradient_of_lqr_is_that_of_the_demonstrations(quadratic, close):
    lqr, reward, problem = quadratic.lqr, quadratic.reward, quadratic.problem
    closed = exact.require_closed_form(lqr)
    expert = closed.optimal_policy(closed.true_reward(), problem)
    demos = rollout(lqr, expert, 4, key=jr.key(1), horizon=6)
    seen = exact.lqr.demo_moments(demos, problem.discount)
    expected = exact.lqr.hypergradient(lqr, reward, problem, seen)
    close(closed.hypergradient(reward, demos, problem), expected, ROUNDING)


def test_solutions_fit_in_the_place_of_a_blank_policy():
    for name in ("tabular", "lqr"):
        environment = make(name).environment
        closed = exact.require_closed_form(environment)
        shapes = eqx.filter_eval_shape(
            closed.optimal_policy, closed.true_reward(), make_problem()
        )
        blank = eqx.filter_eval_shape(closed.blank_policy)
        assert eqx.tree_equal(shapes, blank)
        closed.check_policy(closed.blank_policy())
