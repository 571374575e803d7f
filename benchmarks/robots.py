"""Rewards of robots: what policies trained from scratch on them are worth.

    hyperirl demos collect --env gym:Hopper-v5 --episodes 60 --out hopper.npz
    python benchmarks/robots.py --env Hopper-v5 --demos hopper.npz --train 4 --seeds 3

Each row is one seed of one method, and is added to the file as soon as it is known.
Everything is learned from so many training demonstrations; one more selects. All
other episodes of the file are test episodes: nothing but a row's NLL looks at them.
"""

import dataclasses
import json
import platform
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import tyro

import hyperirl as hi
from hyperirl.cloning import mean_nll
from hyperirl.demos.splitting import deal_out, split_demos
from hyperirl.evaluation.fresh import FreshTraining, policies_like, train_fresh
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.trajectories import returns

_EPISODES = 32  # That a policy is judged by.
_SHOWN = 0.7  # Share of the episodes that start in demonstrated states, as usual.
_HARD = 1e-6  # The temperature of a learner that knows none, and no demonstrations.


@dataclasses.dataclass(frozen=True)
class Robots:
    """What is measured."""

    demos: Path
    """Demonstrations of an expert whose log-probabilities are known, or not."""
    env: str = "Hopper-v5"
    train: int = 4
    """Demonstrations to learn from."""
    seeds: int = 3
    first_seed: int = 0
    methods: tuple[str, ...] = ("fisher", "ml-irl", "bc", "true")
    """`true` is what the same training makes of the true reward."""
    temperature: float = 0.1
    steps: int | None = None
    """Outer steps; as usual for the task by default."""
    budget: int = 2_000_000
    """Environment steps of a policy trained from scratch."""
    json: Path = Path("docs/results/robots.json")

    def run(self) -> None:
        """All rows, one after the other."""
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            seconds = None
            for method in self.methods:
                row = self.row(method, seed, seconds)
                seconds = row.get("learning_seconds", seconds)
                self.add(row)

    def add(self, row: dict[str, Any]) -> None:
        """Writes a row and shows it."""
        rows = json.loads(self.json.read_text()) if self.json.exists() else []
        self.json.parent.mkdir(parents=True, exist_ok=True)
        self.json.write_text(json.dumps([*rows, row], indent=1) + "\n")
        print(json.dumps(row), flush=True)

    def row(self, method: str, seed: int, seconds: float | None) -> dict[str, Any]:
        """One method with one seed; ML-IRL has the time of the one before it."""
        world = hi.worlds.make_world(f"gym:{self.env}")
        known = hi.demos.load(self.demos)
        order = np.random.default_rng(seed).permutation(known.num_episodes)
        count = next(
            n for n in range(3, 1000) if len(deal_out(n, seed)[0]) >= self.train
        )
        demos, rest = known[order[:count]], known[order[count:]]
        parts, began = split_demos(demos, seed), time.monotonic()
        row: dict[str, Any] = {
            "env": self.env,
            "expert": known.provenance.expert,
            "expert_return": mean(
                returns(known.trajectories, known.trajectories.rewards)
            ),
            "train": parts.train.num_episodes,
            "method": method,
            "seed": seed,
            "temperature": self.temperature,
            "budget": self.budget,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "steps_of_a_test_episode": mean(rest.trajectories.lengths),
        }
        if rest.expert_nll is not None:
            row["floor"] = mean(rest.expert_nll)
        if method == "true":
            policy = hi.learn(
                f"gym:{self.env}", demos, "bc", seed=seed, progress=False
            ).policy
            judge = {"fresh": (world.reward, self.temperature, _SHOWN)}
        else:
            timed = {"time": seconds} if method == "ml-irl" and seconds else {}
            steps = {} if self.steps is None or timed else {"steps": self.steps}
            result = hi.learn(
                f"gym:{self.env}",
                demos,
                method,
                seed=seed,
                progress=False,
                temperature=self.temperature,
                **timed,
                **steps,
            )
            policy, rows = result.policy, result.metrics
            row |= {"learning_seconds": time.monotonic() - began}
            row |= self.judged("loop", world, policy, rest.trajectories, seed)
            judge = {}
            if method != "bc":
                last = rows[-1]
                row |= {
                    "outer_steps": len(rows),
                    "seconds_a_step": float(
                        np.median([r["step_seconds"] for r in rows])
                    ),
                    "in_loop_return": mean([r["true_return"] for r in rows[-10:]]),
                    "rank_corr": last.get("rank_corr"),
                    "rank_corr_per_step": last.get("rank_corr_per_step"),
                }
                reward = result.reward
                judge = {
                    "fresh": (reward.soft, self.temperature, _SHOWN),
                    "hard": (reward, _HARD, 0.0),
                }
        for name, (reward, temperature, shown) in judge.items():
            training = FreshTraining(self.budget, demo_starts=shown, num_checks=10)
            fresh = train_fresh(
                world,
                reward,
                problem(temperature, 0.99),
                rest.trajectories,
                key=jr.key(100 + seed),
                starts=parts.train.trajectories,
                training=training,
                policy_for=policies_like(policy),
            )
            row |= self.judged(name, world, fresh.policy, rest.trajectories, seed)
            row[f"{name}_curve"] = [round(x, 1) for x in fresh.curve.env_return]
        return row | {"seconds": time.monotonic() - began}

    def judged(self, name, world, policy, test, seed: int) -> dict[str, float]:
        """A policy's own return, and how likely it makes the test episodes."""
        played = rollout(world, policy, _EPISODES, key=jr.key(seed))
        return {
            f"{name}_return": mean(returns(played, played.rewards)),
            f"{name}_nll": float(mean_nll(policy, test)),
        }


def mean(numbers: Any) -> float:
    """Of an array or a list."""
    return float(jnp.mean(jnp.asarray(numbers)))


if __name__ == "__main__":
    tyro.cli(Robots).run()
