"""Newton's method on `L_inner`, with a least-squares critic.

At the optimum the Hessian of `L_inner` is `alpha F`. So the step

    theta <- theta - (alpha F + damping I)^-1 grad L_inner

converges fast near it: for a tabular softmax policy it is soft policy iteration itself.
The gradient needs no sampled actions. With the soft Q-function linear in features,
`Q = f . w`, found by temporal differences,

    grad L_inner = grad E sum_t gamma^t (-alpha H(pi(. | s_t)) - E_a Q(s_t, a)),

where the states and `w` are held constant and the expectation over actions is done by
quadrature. Where few features hold the Q-function, as in LQR, a handful of steps does
what takes other solvers hundreds.

Both halves of a batch make an estimate of their own; their mean is the step, and their
disagreement says how much of it is noise.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.curvature import ConjugateGradient, Relative
from hyperirl.environments import AbstractEnvironment
from hyperirl.inner.solver import (
    AbstractInnerSolver,
    Report,
    Reward,
    hyperparameter,
    repeat,
)
from hyperirl.lstd import (
    Features,
    goes_on,
    input_normalizer,
    mean_features,
    random_features,
    temporal_differences,
)
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import rewards_of
from hyperirl.rollout import rollout
from hyperirl.scores import score_rows
from hyperirl.trajectories import Trajectories, discount_weights, halves


class NewtonState(eqx.Module):
    """What carries over from one solve to the next."""

    policy: AbstractPolicy
    features: Features
    report: Report  # Of the last update.


class Newton(AbstractInnerSolver):
    """Steps of Newton's method, each on `num_episodes` fresh episodes.

    The first step of a solve is a whole one and the `i`-th is `1 / i` of one, which
    averages the noise of the steps away. No step changes the policy by more than
    `max_kl` nats a time step.
    """

    damping: Float[Array, ""] = hyperparameter(1e-2)  # Relative to tr(alpha F) / dim.
    max_kl: Float[Array, ""] = hyperparameter(0.1)
    ridge: Float[Array, ""] = hyperparameter(1e-5)
    num_episodes: int = eqx.field(static=True, default=128)
    num_units: int = eqx.field(static=True, default=0)  # Random features.
    horizon: int = eqx.field(static=True, default=100)  # Where episodes are cut.

    @property
    def steps_per_update(self) -> int:
        return self.num_episodes * self.horizon

    def init(
        self,
        environment: AbstractEnvironment,
        policy: AbstractPolicy,
        *,
        key: PRNGKeyArray,
    ) -> NewtonState:
        start_key, feature_key = jr.split(key)
        start = rollout(environment, policy, 2, key=start_key, horizon=1)
        features = random_features(
            input_normalizer(start),
            environment.action_space,
            key=feature_key,
            num_units=self.num_units,
        )
        unknown = jnp.full((), jnp.nan, jnp.float32)
        report = Report(*[unknown] * 8, steps=jnp.zeros((), jnp.int32))
        return NewtonState(policy, features, report)

    def run(
        self,
        environment: AbstractEnvironment,
        reward: Reward,
        state: NewtonState,
        problem: Problem,
        num_updates: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[NewtonState, Report]:
        def body(i: Int[Array, ""], state: NewtonState) -> NewtonState:
            batch = rollout(
                environment,
                state.policy,
                self.num_episodes,
                key=jr.fold_in(key, i),
                horizon=self.horizon,
            )
            share = 1 / (1 + i.astype(jnp.float32))
            return self.update(reward, state, batch, problem, share)

        state = repeat(num_updates, body, state)
        steps = num_updates * self.steps_per_update
        return state, eqx.tree_at(lambda r: r.steps, state.report, steps)

    def update(
        self,
        reward: Reward,
        state: NewtonState,
        batch: Trajectories,
        problem: Problem,
        share: Float[Array, ""],
    ) -> NewtonState:
        """One step of length `share`, from trajectories of `state.policy`."""
        params, rest = partition(state.policy)
        flat, unravel = ravel_pytree(params)
        features = eqx.tree_at(
            lambda f: f.normalizer, state.features, input_normalizer(batch)
        )
        pair = halves(batch)
        gradients = jax.vmap(
            lambda half: self._gradient(reward, state.policy, features, half, problem)
        )(pair)
        rows = score_rows(state.policy, batch, problem)
        solver = ConjugateGradient(damping=Relative(self.damping), tolerance=1e-2)
        solutions = jax.vmap(lambda g: solver(rows, g).v)(gradients)
        step = -jnp.mean(solutions, axis=0)

        weights = discount_weights(batch, problem.discount)
        total = jnp.sum(weights) / batch.num_episodes
        divergence = jnp.sum(rows.mv(step) ** 2) / (2 * problem.temperature * total)
        limit = jnp.sqrt(self.max_kl / jnp.maximum(divergence, 1e-30))
        length = jnp.minimum(share, limit)
        policy = eqx.combine(unravel(flat + length * step), rest)
        report = self._report(
            reward, state.policy, batch, problem, gradients, solutions
        )
        report = eqx.tree_at(lambda r: r.kl, report, length**2 * divergence)
        return NewtonState(policy, features, report)

    def _gradient(
        self,
        reward: Reward,
        policy: AbstractPolicy,
        features: Features,
        batch: Trajectories,
        problem: Problem,
    ) -> Float[Array, " dim"]:
        w = self._q_weights(reward, policy, features, batch, problem)
        weights = discount_weights(batch, problem.discount) / batch.num_episodes
        params, rest = partition(policy)
        flat, unravel = ravel_pytree(params)

        def loss(flat):
            policy = eqx.combine(unravel(flat), rest)

            def per_state(s):
                entropy = policy.distribution(s).entropy()
                q = mean_features(features, policy, s) @ w
                return -problem.temperature * entropy - q

            return jnp.sum(weights * jax.vmap(jax.vmap(per_state))(states))

        states = batch.observations[:, :-1]
        return jax.grad(loss)(flat)

    def _q_weights(self, reward, policy, features, batch, problem):
        """`w` with `Q(s, a) = f(s, a) . w`, the soft value of the policy itself."""
        system = temporal_differences(features, policy, batch, problem)
        entropies = jax.vmap(jax.vmap(policy.entropy))(batch.observations[:, 1:])
        ahead = problem.discount * problem.temperature * goes_on(batch) * entropies
        return system.value_weights(rewards_of(reward, batch) + ahead, ridge=self.ridge)

    def _report(self, reward, policy, batch, problem, gradients, solutions) -> Report:
        first, second = gradients
        entropies = jax.vmap(jax.vmap(policy.entropy))(batch.observations[:, :-1])
        entropies = jnp.where(batch.mask, entropies, 0.0)
        weights = discount_weights(batch, problem.discount) / batch.num_episodes
        soft = rewards_of(reward, batch) + problem.temperature * entropies
        noise = jnp.linalg.norm(first - second) / 2
        decrement = lambda g, v: (g @ v) / 2
        return Report(
            gradient_norm=jnp.linalg.norm(first + second) / 2,
            gradient_norm_error=noise,
            gradient_norm_squared=first @ second,
            kl=jnp.full((), jnp.nan, jnp.float32),
            entropy=jnp.sum(entropies) / jnp.sum(batch.mask),
            soft_return=jnp.sum(weights * soft),
            gap=decrement(first, solutions[1]),
            gap_error=decrement(first - second, solutions[0] - solutions[1]) / 4,
            steps=jnp.zeros((), jnp.int32),
        )
