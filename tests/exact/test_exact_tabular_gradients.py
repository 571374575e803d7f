"""The identities behind the hypergradient, on finite MDPs, with nothing sampled.

Each docstring names changes to the code under which the test was seen to fail.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from hyperirl.environments import Tabular
from hyperirl.exact import tabular
from hyperirl.policies import softmax_table
from hyperirl.rollout import rollout
from hyperirl.trajectories import discount_weights

ROUNDING = 1e-11
STENCIL = [1 / 12, -2 / 3, 0, 2 / 3, -1 / 12]  # The derivative, to fourth order.

solve = jax.jit(tabular.soft_value_iteration)
occupancy = jax.jit(tabular.occupancy)
demo_weights = jax.jit(tabular.demo_weights, static_argnums=2)
step_probabilities = jax.jit(tabular.step_probabilities, static_argnums=2)


def optimal_logits(finite):
    return solve(finite.mdp, finite.reward, finite.problem).logits


def expert_logits(finite):
    """The expert is soft-optimal for the environment's own reward."""
    return solve(finite.mdp, finite.mdp.rewards, finite.problem).logits


def expert_visits(finite):
    return occupancy(finite.mdp, expert_logits(finite), finite.problem.discount)


@jax.jit
def hessian(finite, logits):
    loss = lambda logits: tabular.inner_loss(
        finite.mdp, logits, finite.reward, finite.problem
    )
    return jax.hessian(loss)(logits).reshape(logits.size, logits.size)


@jax.jit
def fisher(finite, logits):
    return tabular.fisher(finite.mdp, logits, finite.problem)


def hypergradients(finite, weights, damping=0.0):
    """Implicit, by autodiff through the exact solution, and that of ML-IRL."""
    return _hypergradients(finite, optimal_logits(finite), weights, damping)


@jax.jit
def _hypergradients(finite, logits, weights, damping):
    mdp, problem = finite.mdp, finite.problem
    args = mdp, logits, problem, weights
    return {
        "implicit": tabular.implicit_hypergradient(*args, damping=damping),
        "exact": tabular.hypergradient(mdp, finite.reward, problem, weights),
        "ml-irl": tabular.ml_irl_gradient(*args),
    }


@jax.jit
def differences(finite, weights, step=1e-3):
    """Central differences of the outer loss, entry by entry."""

    def loss(reward):
        values = tabular.soft_value_iteration(finite.mdp, reward, finite.problem)
        return tabular.outer_loss(values.logits, weights)

    def slope(direction):
        at = jax.vmap(lambda k: loss(finite.reward + k * step * direction))
        return jnp.array(STENCIL) @ at(jnp.arange(-2.0, 3)) / step

    size = finite.reward.size
    directions = jnp.eye(size).reshape(size, *finite.reward.shape)
    return jax.vmap(slope)(directions).reshape(finite.reward.shape)


def relative(actual, expected):
    return jnp.max(jnp.abs(actual - expected)) / jnp.max(jnp.abs(expected))


def demo_visits(finite, key):
    """Those of 10 demonstrations of 20 steps: no policy has exactly these."""
    policy = softmax_table(expert_logits(finite))
    demos = rollout(finite.mdp, policy, 10, key=key, horizon=20)
    return demo_weights(demos, finite.problem.discount, 3)


def test_at_the_optimum_the_hessian_is_temperature_times_fisher(finite, close):
    """Fails if `fisher` or `inner_loss` drops the discount, or the loss its sign."""
    logits = optimal_logits(finite)
    alpha = finite.problem.temperature
    close(alpha * fisher(finite, logits), hessian(finite, logits), ROUNDING)


def test_away_from_the_optimum_it_is_not(finite):
    """The identity is about the optimum: the test above can fail."""
    curvature = finite.problem.temperature * fisher(finite, finite.logits)
    assert relative(curvature, hessian(finite, finite.logits)) > 0.1


@jax.jit
def restricted_hessian(finite, logits, features):
    loss = lambda theta: tabular.inner_loss(
        finite.mdp, logits + features @ theta, finite.reward, finite.problem
    )
    return jax.hessian(loss)(jnp.zeros(4))


def test_the_identity_needs_only_that_the_class_contains_the_optimum(
    finite, getkey, close
):
    """A class of 4 parameters for 15 logits, through the optimum: `J' alpha F J`.

    Fails like the one for the full table.
    """
    best = optimal_logits(finite)
    features = jr.normal(getkey(), (*best.shape, 4), jnp.float64)

    jacobian = features.reshape(-1, 4)
    curvature = finite.problem.temperature * fisher(finite, best)
    expected = restricted_hessian(finite, best, features)
    close(jacobian.T @ curvature @ jacobian, expected, ROUNDING)


def test_ending_with_chance_one_minus_discount_replaces_the_weights(finite, close):
    """The absorbing-state lemma, with the absorbing state as a state like any other.

    From everywhere one falls into it with the chance that the task ends, and otherwise
    with `1 - gamma`; there nothing happens. Unweighted visits to the other states, step
    by step for 1000 steps, are the weighted ones of the original.
    Fails if `occupancy` drops the discount or the policy, or transposes transitions.
    """
    mdp, gamma = finite.mdp, finite.problem.discount
    states, actions = mdp.rewards.shape
    kept = gamma * mdp.transitions
    fall = 1 - jnp.sum(kept, axis=-1, keepdims=True)
    moves = jnp.concatenate([kept, fall], axis=-1)
    stay = jnp.zeros((1, actions, states + 1)).at[:, :, -1].set(1.0)
    absorbing = Tabular(
        transitions=jnp.concatenate([moves, stay]),
        rewards=jnp.concatenate([mdp.rewards, jnp.zeros((1, actions))]),
        initial=jnp.concatenate([mdp.initial, jnp.zeros(1)]),
    )
    logits = jnp.concatenate([finite.logits, jnp.zeros((1, actions))])
    unweighted = jnp.sum(step_probabilities(absorbing, logits, 1000), axis=0)[:states]
    weighted = occupancy(mdp, finite.logits, gamma)
    close(unweighted, weighted, ROUNDING)


@jax.jit
def expected_sum(mdp, logits, cost, discount):
    episodes, probabilities = tabular.enumerate_episodes(mdp, logits, 4)
    states = jnp.argmax(episodes.observations[:, :-1], axis=-1)
    paid = cost[jnp.arange(4)[None, :], states, episodes.actions]
    sums = jnp.sum(discount_weights(episodes, discount) * paid, axis=1)
    return probabilities @ sums


def test_the_lemma_holds_for_sums_along_every_episode(tiny, getkey, close):
    """All episodes of 4 steps, with a different cost at every step and state.

    Fails if the weights are `gamma^(t + 1)`, or if listed episodes never terminate.
    """
    gamma = tiny.problem.discount
    cost = jr.normal(getkey(), (4, 2, 2), jnp.float64)

    mdp = tiny.mdp
    shorter = Tabular(
        transitions=gamma * mdp.transitions, rewards=mdp.rewards, initial=mdp.initial
    )
    unweighted = expected_sum(shorter, tiny.logits, cost, jnp.float64(1))
    close(unweighted, expected_sum(mdp, tiny.logits, cost, gamma), ROUNDING)


@jax.jit
def fisher_and_cross(tiny):
    args = tiny.mdp, tiny.logits, tiny.problem
    fisher = tabular.fisher(*args, horizon=4)
    return fisher, tabular.cross_derivative(*args, horizon=4)


@jax.jit
def enumerated_fisher_and_cross(tiny):
    episodes, probabilities = tabular.enumerate_episodes(tiny.mdp, tiny.logits, 4)
    log_pi = lambda logits: jax.nn.log_softmax(logits).reshape(-1)
    scores = jax.jacobian(log_pi)(tiny.logits).reshape(4, 4)
    states = jnp.argmax(episodes.observations[:, :-1], axis=-1)
    taken = 2 * states.astype(jnp.int32) + episodes.actions
    score = jnp.where(episodes.mask[:, :, None], scores[taken], 0.0)
    weights = discount_weights(episodes, tiny.problem.discount)
    weights = probabilities[:, None] * weights
    visit = jax.nn.one_hot(taken, 4, dtype=jnp.float64)
    prefix = jnp.cumsum(score, axis=1)
    fisher = jnp.einsum("nt,nti,ntj->ij", weights, score, score)
    return fisher, -jnp.einsum("nt,nti,ntj->ij", weights, visit, prefix)


def test_fisher_and_cross_derivative_are_expectations_over_episodes(tiny, close):
    """`E sum_t gamma^t score score'` and the paper's prefix-score form, truncated.

    Fails without the discount of either, or the sign of the cross derivative.
    """
    actual, expected = fisher_and_cross(tiny), enumerated_fisher_and_cross(tiny)
    close(actual[0], expected[0], ROUNDING)
    close(actual[1], expected[1], ROUNDING)


@pytest.mark.parametrize("from_demos", [False, True], ids=["population", "demos"])
def test_implicit_gradient_is_the_derivative_through_the_exact_solution(
    finite, getkey, close, from_demos
):
    """By autodiff through soft value iteration, whatever the expert's data.

    Fails if the implicit one drops the temperature, the discount of the Fisher or of
    the cross derivative, or its sign.
    """
    weights = demo_visits(finite, getkey()) if from_demos else expert_visits(finite)
    gradients = hypergradients(finite, weights)
    close(gradients["implicit"], gradients["exact"], ROUNDING)


@pytest.mark.parametrize("from_demos", [False, True], ids=["population", "demos"])
def test_autodiff_through_the_solution_is_finite_differences(
    finite, getkey, close, from_demos
):
    """To 1e-9, the accuracy of the differences.

    Fails if soft value iteration stops gradients, that is, if the last Newton steps are
    not differentiated.
    """
    weights = demo_visits(finite, getkey()) if from_demos else expert_visits(finite)
    exact = hypergradients(finite, weights)["exact"]
    close(exact, differences(finite, weights), 1e-9)


def test_for_visits_the_dynamics_explain_it_is_the_ml_irl_gradient(finite, close):
    """Fails if either drops the temperature, the discount or its sign."""
    gradients = hypergradients(finite, expert_visits(finite))
    close(gradients["ml-irl"], gradients["exact"], ROUNDING)


def test_for_finite_data_it_is_not(finite, getkey):
    """With 10 demonstrations ML-IRL is not the gradient of their likelihood.

    Nor with demonstrations that start elsewhere.
    """
    mdp, problem = finite.mdp, finite.problem
    first = jnp.roll(mdp.initial, 1)
    elsewhere = Tabular(transitions=mdp.transitions, rewards=mdp.rewards, initial=first)
    for weights in (
        demo_visits(finite, getkey()),
        occupancy(elsewhere, finite.logits, problem.discount),
    ):
        gradients = hypergradients(finite, weights)
        assert relative(gradients["ml-irl"], gradients["exact"]) > 0.02


@jax.jit
def damped(finite, logits, weights, damping):
    """The same formula with every derivative taken by autodiff of the losses."""
    shape = finite.reward.shape
    inner = lambda theta, phi: tabular.inner_loss(
        finite.mdp, theta.reshape(shape), phi.reshape(shape), finite.problem
    )
    outer = lambda theta: tabular.outer_loss(theta.reshape(shape), weights)
    theta, phi = logits.reshape(-1), finite.reward.reshape(-1)
    curvature = jax.hessian(inner)(theta, phi) + damping * jnp.eye(theta.size)
    cross = jax.jacobian(jax.grad(inner), argnums=1)(theta, phi)
    solved = jnp.linalg.solve(curvature, jax.grad(outer)(theta))
    return -(cross.T @ solved).reshape(shape)


def test_damping_enters_beside_temperature_times_fisher(finite, close):
    """Curvature and cross derivative by autodiff of the inner loss, at the optimum.

    Fails if the damping multiplies the Fisher, is scaled by the temperature, or if any
    factor loses its sign.
    """
    weights = expert_visits(finite)
    actual = hypergradients(finite, weights, 0.1)["implicit"]
    close(actual, damped(finite, optimal_logits(finite), weights, 0.1), ROUNDING)


def test_damping_shortens_the_gradient_more_than_it_turns_it(finite):
    """Fails if the damping is subtracted, or not used."""
    weights = expert_visits(finite)
    implicit = lambda damping: hypergradients(finite, weights, damping)["implicit"]
    exact = implicit(0.0)
    shorter = [implicit(damping) for damping in (0.01, 0.1, 1.0)]
    norms = [jnp.linalg.norm(h) for h in (exact, *shorter)]
    assert norms == sorted(norms, reverse=True)
    for h in shorter:
        cosine = jnp.sum(exact * h) / (norms[0] * jnp.linalg.norm(h))
        assert cosine > jnp.linalg.norm(h) / norms[0]


@jax.jit
def products(finite, weights, direction, step=1e-3):
    """The second derivative of the outer loss in a direction, in two ways."""
    gradient = lambda reward: tabular.hypergradient(
        finite.mdp, reward, finite.problem, weights
    )
    at = jax.vmap(lambda k: gradient(finite.reward + k * step * direction))
    slope = jnp.tensordot(jnp.array(STENCIL), at(jnp.arange(-2.0, 3)), axes=1) / step
    return jax.jvp(gradient, (finite.reward,), (direction,))[1], slope


def test_second_derivatives_go_through_the_solution_as_well(finite, getkey, close):
    """A Hessian-vector product of the outer loss, against differences of gradients.

    Fails with fewer than two differentiated Newton steps.
    """
    weights = expert_visits(finite)
    direction = jr.normal(getkey(), finite.reward.shape, jnp.float64)

    exact, differences = products(finite, weights, direction)
    close(exact, differences, 1e-9)
