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
from hyperirl.evaluation.ranking import (
    rank_correlation,
    ranking_set,
    untrained_control,
)
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.trajectories import returns

_EPISODES = 32  # That a policy is judged by.
_SHOWN = 0.7  # Share of the episodes that start in demonstrated states, as usual.
_HARD = 1e-6  # The temperature of a learner that knows none.


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
    methods: tuple[str, ...] = ("matching", "ml-irl", "bc", "true")
    """`true` is what the same training makes of the true reward."""
    temperature: float | None = None
    """Of the expert and of learning; as usual for the task by default."""
    reward: str | None = None
    """The kind of reward; as usual for the task by default."""
    steps: int | None = None
    """Outer steps; as usual for the task by default."""
    learn_for: float | None = None
    """Seconds that ML-IRL learns if no other method did before it."""
    budget: int = 2_000_000
    """Environment steps of a policy trained from scratch."""
    hard: bool = True
    """Whether one is also trained as other libraries would."""
    keep: Path | None = None
    """A folder for the rewards that were learned."""
    json: Path = Path("docs/results/robots.json")

    def run(self) -> None:
        """All rows, one after the other."""
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            case, seconds = Case(self, seed), self.learn_for
            for method in self.methods:
                row = case.row(method, seconds)
                seconds = row.get("learning_seconds", seconds)
                self.add(row)

    def add(self, row: dict[str, Any]) -> None:
        """Writes a row and shows it."""
        rows = json.loads(self.json.read_text()) if self.json.exists() else []
        self.json.parent.mkdir(parents=True, exist_ok=True)
        self.json.write_text(json.dumps([*rows, row], indent=1) + "\n")
        print(json.dumps(row), flush=True)


class Case:
    """One seed: its demonstrations, dealt out, and a clone of them."""

    def __init__(self, asked: Robots, seed: int):
        self.asked, self.seed = asked, seed
        task = hi.tasks.as_task(f"gym:{asked.env}")
        self.world: Any = task.environment
        self.temperature = asked.temperature or task.temperature
        known = hi.demos.load(asked.demos)
        order = np.random.default_rng(seed).permutation(known.num_episodes)
        enough = lambda n: len(deal_out(n, seed)[0]) >= asked.train
        count = next(n for n in range(3, known.num_episodes) if enough(n))
        self.demos, rest = known[order[:count]], known[order[count:]]
        self.train = split_demos(self.demos, seed).train
        self.test = rest.trajectories
        self.clone = self.learn("bc").policy
        self.about: dict[str, Any] = {
            "env": asked.env,
            "expert": known.provenance.expert,
            "expert_return": mean(
                returns(known.trajectories, known.trajectories.rewards)
            ),
            "train": self.train.num_episodes,
            "seed": seed,
            "temperature": self.temperature,
            "budget": asked.budget,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "steps_of_a_test_episode": mean(self.test.lengths),
        }
        if rest.expert_nll is not None:
            self.about["floor"] = mean(rest.expert_nll)

    def learn(self, method: str, **said: Any) -> hi.Result:
        """From the demonstrations of this case."""
        return hi.learn(
            f"gym:{self.asked.env}",
            self.demos,
            method,
            seed=self.seed,
            progress=False,
            temperature=self.temperature,
            **said,
        )

    def row(self, method: str, seconds: float | None) -> dict[str, Any]:
        """What a method learns; ML-IRL has the time of the one before it."""
        began, used = time.monotonic(), time.process_time()
        row = self.about | {"method": method}
        if method == "bc":
            return row | self.judged("loop", self.clone)
        if method == "true":
            row |= self.retrained(self.world.reward, self.world.reward)
        else:
            timed = method == "ml-irl" and seconds is not None
            said = {"steps": self.asked.steps, "reward": self.asked.reward}
            if timed:
                said |= {"steps": None, "time": seconds}
            said = {name: value for name, value in said.items() if value is not None}
            result = self.learn(method, **said)
            row |= {
                "learning_seconds": time.monotonic() - began,
                "learning_processor_seconds": time.process_time() - used,
            }
            row |= self.learned(result)
            self.keep(method, result)
            row |= self.judged("loop", result.policy)
            row |= self.retrained(result.reward.soft, result.reward)
        return row | {
            "seconds": time.monotonic() - began,
            "processor_seconds": time.process_time() - used,
        }

    def learned(self, result: hi.Result) -> dict[str, Any]:
        """What the run itself says, and how its reward ranks trajectories."""
        key, rows = jr.key(1000 + self.seed), result.metrics
        shown = ranking_set(self.world, self.clone, key=key).trajectories
        ranked = rank_correlation(result.reward, shown)
        control = untrained_control(result.reward.soft, shown, key=key)
        return {
            "outer_steps": len(rows),
            "seconds_a_step": float(np.median([r["step_seconds"] for r in rows])),
            "in_loop_return": mean([r["true_return"] for r in rows[-10:]]),
            "rank_corr": float(ranked.total),
            "rank_corr_per_step": float(ranked.per_step),
            "untrained_rank_corr": float(control.total),
            "untrained_rank_corr_per_step": float(control.per_step),
        }

    def keep(self, method: str, result: hi.Result) -> None:
        """Writes the reward, if that was asked for."""
        if self.asked.keep is not None:
            name = f"{self.asked.env}-{self.asked.demos.stem}-{self.asked.train}"
            path = self.asked.keep / f"{name}-{method}-{self.seed}"
            result.save(path, overwrite=True)

    def retrained(self, soft: Any, alone: Any) -> dict[str, Any]:
        """Policies from scratch on a frozen reward.

        One has its entropy, and some of its episodes start in demonstrated states. The
        other has neither, as in other libraries.
        """
        found = self.trained("fresh", soft, self.temperature, _SHOWN)
        if self.asked.hard:
            found |= self.trained("hard", alone, _HARD, 0.0)
        return found

    def trained(
        self, name: str, reward: Any, temperature: float, shown: float
    ) -> dict[str, Any]:
        """A policy from scratch, and what it is worth."""
        training = FreshTraining(self.asked.budget, demo_starts=shown, num_checks=10)
        fresh = train_fresh(
            self.world,
            reward,
            problem(temperature, 0.99),
            self.test,
            key=jr.key(100 + self.seed),
            starts=self.train.trajectories,
            training=training,
            policy_for=policies_like(self.clone),
        )
        curve = [round(x, 1) for x in fresh.curve.env_return]
        return self.judged(name, fresh.policy) | {f"{name}_curve": curve}

    def judged(self, name: str, policy: Any) -> dict[str, float]:
        """A policy's own return, and how likely it makes the test episodes."""
        played = rollout(self.world, policy, _EPISODES, key=jr.key(self.seed))
        return {
            f"{name}_return": mean(returns(played, played.rewards)),
            f"{name}_steps": mean(played.lengths),
            f"{name}_nll": mean(mean_nll(policy, self.test)),
        }


def mean(numbers: Any) -> float:
    """Of an array or a list."""
    return float(jnp.mean(jnp.asarray(numbers)))


if __name__ == "__main__":
    tyro.cli(Robots).run()
