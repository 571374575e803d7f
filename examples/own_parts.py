"""Parts of your own: a reward, a policy, an inner solver, an estimator.

Each is a small class with one or two methods, and each is used by itself beside the
built-in parts, or together with the others. `python examples/own_parts.py` learns what
the expert of CartPole cares about, as four numbers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

import hyperirl as hi
from hyperirl.hypergradient import AbstractEstimator, Estimate
from hyperirl.inner import AbstractInnerSolver, SolveReport
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy, Categorical, log_probs
from hyperirl.rewards import AbstractReward, rewards_of
from hyperirl.rollout import rollout


class Costs(AbstractReward):
    """What each number of the observation costs, squared. The costs are learned."""

    roots: Float[Array, " obs"]
    bonus: Float[Array, ""]  # Paid in each step.

    def value(self, observation, action):
        return self.bonus - jnp.sum((self.roots * observation) ** 2)


class Linear(AbstractPolicy):
    """Choices whose logits are linear in the observation."""

    weight: Float[Array, "actions obs"]

    def distribution(self, observation):
        return Categorical(self.weight @ observation)


class Reinforced(eqx.Module):
    """The state of the solver below: its policy, and nothing else."""

    policy: AbstractPolicy


class PolicyGradient(AbstractInnerSolver):
    """The plainest solver: weight each score by the soft return that follows it."""

    rate: float = 0.1
    episodes: int = eqx.field(static=True, default=32)
    horizon: int = eqx.field(static=True, default=100)

    @property
    def steps_per_update(self):
        return self.episodes * self.horizon

    def init(self, environment, policy, *, key):
        return Reinforced(policy)

    def run(self, environment, reward, state, problem, num_updates, *, key):
        params, rest = partition(state.policy)

        def update(i, params):
            policy, episode_key = eqx.combine(params, rest), jr.fold_in(key, i)
            length = min(self.horizon, environment.horizon)
            batch = rollout(
                environment, policy, self.episodes, key=episode_key, horizon=length
            )
            paid = rewards_of(reward, batch)
            paid = paid - problem.temperature * log_probs(policy, batch)
            weights = problem.discount ** jnp.arange(length, dtype=jnp.float32)
            to_go = jnp.cumsum((weights[None] * paid)[:, ::-1], axis=1)[:, ::-1]
            baseline = jnp.mean(to_go, axis=0, keepdims=True)
            advantages = jax.lax.stop_gradient(to_go - baseline)

            def surrogate(params):
                scores = log_probs(eqx.combine(params, rest), batch)
                return jnp.mean(jnp.sum(advantages * scores, axis=1))

            climb = lambda p, slope: p + self.rate * slope
            return jax.tree.map(climb, params, jax.grad(surrogate)(params))

        params = jax.lax.fori_loop(0, num_updates, update, params)
        # A solver that does not know how near the optimum it is says so.
        report = SolveReport.unknown()
        return Reinforced(eqx.combine(params, rest)), report


class Remembering(AbstractEstimator):
    """Another estimator, averaged over the last steps: less noise, a little late."""

    other: AbstractEstimator
    keep: float = 0.5

    def init(self, reward, policy):
        return jax.tree.map(jnp.zeros_like, partition(reward)[0])

    def update(self, state, policy, reward, expert, agent, problem):
        new = self.other(policy, reward, expert, agent, problem)
        mix = lambda old, h: self.keep * old + (1 - self.keep) * h
        mean = jax.tree.map(mix, state, new.h)
        return Estimate(mean, new.diagnostics), mean


def first_reward() -> Costs:
    """Every input costs a little; a step pays a little."""
    return Costs(jnp.full(4, 0.1, jnp.float32), jnp.asarray(0.02, jnp.float32))


def main(**options) -> hi.Result:
    """Learns the costs, with the built-in parts for all else."""
    result = hi.learn("cartpole", reward=first_reward(), **options)
    print(result)
    names = "position", "velocity", "angle", "angular velocity"
    for name, root in zip(names, result.reward.soft.roots, strict=True):
        print(f"{name:18} costs {float(root) ** 2:.4f} times its square")
    return result


if __name__ == "__main__":
    main()
