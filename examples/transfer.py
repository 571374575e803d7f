"""A reward outlives a change of the dynamics; a clone does not.

A reward for CartPole is learned from demonstrations with an ordinary pole. Then the
pole gets longer, and policies are trained for it: on the learned reward, and on the
true one. A clone of the expert is taken along as it is.
Run it: `python examples/transfer.py`.
"""

import jax.random as jr

import hyperirl as hi
from hyperirl import inner, tasks
from hyperirl.environments import AbstractWorld
from hyperirl.policies import AbstractPolicy
from hyperirl.rollout import rollout


def true_return(environment: AbstractWorld, policy: AbstractPolicy) -> float:
    """Of 64 episodes, on average."""
    episodes = rollout(environment, policy, 64, key=jr.key(0))
    return float(episodes.rewards.sum(axis=1).mean())


def main(factor: float = 3.0, budget: int = 500_000, **options) -> dict[str, float]:
    """Learns once, then trains in the changed world."""
    learned = hi.learn("cartpole", **options)
    clone = hi.learn("cartpole", method="bc", **options)

    ordinary = tasks.make("cartpole").environment
    changed = tasks.make("cartpole", half_length=0.5 * factor).environment
    enough = inner.SolveBudget(steps=budget)
    problem = learned.config.problem  # Its temperature and discount.
    retrain = lambda reward: (
        inner.train(changed, reward, problem=problem, budget=enough).policy
    )

    found = {
        "the clone, in the ordinary world": true_return(ordinary, clone.policy),
        "the clone, as it is": true_return(changed, clone.policy),
        "trained on the learned reward": true_return(
            changed, retrain(learned.reward.soft)
        ),
        "trained on the true reward": true_return(changed, retrain(None)),
    }
    for name, number in found.items():
        print(f"{name:34} {number:6.1f}")
    return found


if __name__ == "__main__":
    main()
