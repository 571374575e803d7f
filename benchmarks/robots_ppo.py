"""PPO on a robot's true reward: what its settings make of the same steps.

    python benchmarks/robots_ppo.py --steps 600000
    python benchmarks/robots_ppo.py --names usual --steps 3000000 --temperature 1e-6

Rates fall linearly, the policy's to 1e-5. Policies are judged by 32 episodes with their
noise, and by 20 without.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import tyro

from hyperirl.inner import PPO, ROBOTS, chunks, true_reward
from hyperirl.policies import AbstractPolicy, mlp_policy
from hyperirl.policies.actor import AbstractActor
from hyperirl.problem import problem
from hyperirl.rewards import fit_normalizer
from hyperirl.rollout import rollout
from hyperirl.trajectories import returns
from hyperirl.worlds import make_world

_MANY = dict(num_epochs=10, num_minibatches=32, learning_rate=3e-4, critic_rate=3e-4)
_SMALL = dict(num_envs=16) | _MANY
_WIDE = dict(initial_log_scale=0.0)
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "large batches, few gradients": (dict(learning_rate=1e-3, critic_rate=2e-3), {}),
    "large batches": (_MANY, {}),
    "short stretches": (_MANY | dict(num_steps=32), {}),
    "small batches": (_SMALL, {}),
    "small batches, wide": (_SMALL, _WIDE),
    "plain Gaussian": (_SMALL, _WIDE | dict(covariance="diagonal", squash=False)),
    "normalized": (_SMALL, _WIDE | dict(normalized=True)),
    "fast, normalized": (ROBOTS, _WIDE | dict(normalized=True)),
    "usual": (ROBOTS, {}),
}
"""Of PPO, and of the policy."""
_PARTS = 20
_LAST = 1e-5  # The policy's rate at the end.


class Greedy(AbstractActor):
    """A policy without its noise."""

    policy: AbstractPolicy

    def sample(self, observation, *, key):
        del key
        return self.policy.distribution(observation).mode()

    def draw_noise(self, *, key):
        return self.policy.draw_noise(key=key)

    def act(self, observation, noise):
        return self.sample(observation, key=noise)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is trained."""

    env: str = "Hopper-v5"
    names: tuple[str, ...] = tuple(SETTINGS)
    steps: int = 600_000
    temperature: float = 0.1
    seed: int = 0
    json: Path = Path("docs/results/robots_ppo.json")

    def run(self) -> None:
        """All of them, one after the other."""
        for name in self.names:
            rows = json.loads(self.json.read_text()) if self.json.exists() else []
            row = self.row(name)
            self.json.write_text(json.dumps([*rows, row], indent=1) + "\n")
            print(json.dumps(row), flush=True)

    def row(self, name: str) -> dict[str, Any]:
        """What a training ends with."""
        world, (ppo, looks) = make_world(f"gym:{self.env}"), SETTINGS[name]
        policy_key, init_key, solve_key, play_key = jr.split(jr.key(self.seed), 4)
        policy = untrained(world, key=policy_key, **looks)
        whole = PPO(**ppo)
        state = whole.init(world, policy, key=init_key)
        began, curve = time.process_time(), []
        parts = chunks(self.steps // whole.steps_per_update, _PARTS)
        for i, part in enumerate(parts):
            state, _ = share_of(whole, part.start, part.end).solve(
                world,
                true_reward(world),
                state,
                problem(self.temperature, 0.99),
                part.num_updates,
                key=jr.fold_in(solve_key, i),
            )
            if i % 2:
                key = jr.fold_in(play_key, i)
                curve.append(round(played(world, state.policy, 16, key)))
        return {
            "env": self.env,
            "settings": name,
            "steps": self.steps,
            "temperature": self.temperature,
            "seed": self.seed,
            "curve": curve,
            "with_noise": played(world, state.policy, 32, play_key),
            "greedy": played(world, Greedy(state.policy), 20, play_key),
            "processor_seconds": time.process_time() - began,
        }


def share_of(whole: PPO, start: float, end: float) -> PPO:
    """For the part of a training between two shares of it."""
    left = lambda share: 1 - (1 - _LAST / whole.learning_rate) * share
    where = lambda ppo: (ppo.learning_rate, ppo.critic_rate, ppo.final_rate)
    rates = whole.learning_rate * left(start), whole.critic_rate * left(start)
    return eqx.tree_at(where, whole, (*rates, jnp.float32(left(end) / left(start))))


def untrained(world, *, key, normalized=False, **looks) -> AbstractPolicy:
    """A Gaussian that is squashed into the bounds, if nothing else is said."""
    draw_key, play_key = jr.split(key)
    looks = dict(covariance="state", squash=True) | looks
    size, space = world.observation_size, world.action_space
    policy = mlp_policy(size, space, key=draw_key, **looks)
    if not normalized:
        return policy
    seen = fit_normalizer(rollout(world, policy, 64, key=play_key))
    return mlp_policy(size, space, key=draw_key, normalizer=seen, **looks)


def played(world, actor: Any, episodes: int, key) -> float:
    """The mean return."""
    seen = rollout(world, actor, episodes, key=key)
    return float(jnp.mean(returns(seen, seen.rewards)))


if __name__ == "__main__":
    tyro.cli(Settings).run()
