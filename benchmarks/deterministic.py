"""What is learned from an expert that acts without chance?

One expert of CartPole shows two sets of episodes: its actions drawn from its policy,
and always its likeliest one. From each, rewards are learned with more and more outer
steps. For a row: the NLL of held-out episodes, the scale of the reward on them in
temperatures (its deviation over the steps), how it ranks trajectories, and what a
policy returns that was trained on it from scratch.

    python benchmarks/deterministic.py --json docs/results/deterministic.json
"""

import argparse
import json
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import hyperirl as hi
from hyperirl.demos import Demos
from hyperirl.inner import SolveBudget, train
from hyperirl.policies import AbstractActor, AbstractPolicy
from hyperirl.rollout import rollout

EPISODES = 60
EXPERT = SolveBudget(steps=1_000_000)
FRESH = 500_000  # Environment steps.


class Likeliest(AbstractActor):
    """Always takes the likeliest action of a policy."""

    policy: AbstractPolicy

    def sample(self, observation: Float[Array, " obs"], *, key: PRNGKeyArray) -> Array:
        return self.policy.distribution(observation).mode()


def shown(actor: AbstractActor) -> Demos:
    """Episodes of an expert whose log-probabilities nobody knows."""
    world = hi.tasks.make("cartpole").environment
    return Demos(rollout(world, actor, EPISODES, key=jr.key(1)))


def row(demos: Demos, steps: int, seed: int) -> dict:
    """What comes out of a run of so many outer steps."""
    found = hi.learn("cartpole", demos, steps=steps, seed=seed, progress=False)
    last, batch = found.metrics[-1], demos.trajectories
    assert found.reward is not None
    paid = found.reward(batch.observations[:, :-1], batch.actions)
    worth = hi.evaluate(found, seeds=1, budget=FRESH, transfer=False, progress=False)
    return {
        "steps": steps,
        "seed": seed,
        "nll": last["nll_valid"],
        "best_nll": last["best_nll_valid"],
        "clone_nll": worth["bc_nll"]["mean"],
        "fresh_nll": worth["policy_nll"]["mean"],
        "scale": float(np.std(np.asarray(paid)[np.asarray(batch.mask)]))
        / float(found.config.temperature),
        "rank_corr": last["rank_corr"],
        "return_in_the_loop": last["true_return"],
        "fresh_return": worth["env_return"]["mean"],
        "hard_return": worth["hard_return"]["mean"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ("drawn", "likeliest")
    parser.add_argument("--actions", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--steps", type=int, nargs="+", default=[15, 60])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    expert = train(hi.tasks.make("cartpole").environment, budget=EXPERT).policy
    rows = []
    for name in options.actions:
        demos = shown(expert if name == "drawn" else Likeliest(expert))
        returned = float(jnp.mean(demos.trajectories.lengths.astype(jnp.float32)))
        odd = [oddity.name for oddity in hi.demos.oddities(demos)]
        for seed in range(options.seeds):
            for steps in options.steps:
                about = {"actions": name, "expert_return": returned, "oddities": odd}
                rows.append(about | row(demos, steps, seed))
                print(json.dumps(rows[-1]), flush=True)
                if options.json:
                    options.json.write_text(json.dumps({"rows": rows}, indent=2))


if __name__ == "__main__":
    main()
