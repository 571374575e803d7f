"""A cell that makes demonstrations the way the paper's authors made theirs.

PPO for choices (CartPole), SAC for vectors (LQR), trained on the true reward; then the
expert acts by the mode of its policy, without noise. (The authors' LQR expert has a
return of -23.23; the exact policy without noise has -23.2, and -33.2 with it.)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl import demos
from hyperirl._jax import enable_compilation_cache
from hyperirl.experiments.cell import Cell, Result
from hyperirl.inner import PPO, SAC, SolveBudget, train
from hyperirl.policies import AbstractPolicy
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete
from hyperirl.tasks import make
from hyperirl.trajectories import returns


class Greedy(AbstractPolicy):
    """Acts by the mode of another policy."""

    policy: AbstractPolicy

    def distribution(self, observation: Float[Array, " obs"]):
        return self.policy.distribution(observation)

    def sample(self, observation: Float[Array, " obs"], *, key: PRNGKeyArray) -> Array:
        del key
        return self.distribution(observation).mode()


def expert(experiment: str, env: str, *, steps: int, episodes: int) -> Cell:
    """A cell that trains an expert for so many steps and keeps episodes of it."""
    settings = {"expert": env, "steps": steps, "episodes": episodes, "seed": 0}
    return Cell(experiment, __name__, settings)


def demos_path(runs: Path, cell_id: str) -> Path:
    """Where the demonstrations of an expert are, among the run folders."""
    return runs / cell_id / "demos.npz"


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """Trains the expert and writes its demonstrations."""
    enable_compilation_cache()
    env, steps = settings["expert"], settings["steps"]
    environment = make(env).environment
    choices = isinstance(environment.action_space, Discrete)
    solver = PPO(num_envs=16) if choices else SAC()
    trained = train(
        environment,
        solver=solver,
        budget=SolveBudget(steps=steps),
        seed=settings["seed"],
        num_evaluation_episodes=4,
        updates_per_call=max(1, steps // solver.steps_per_update // 4),
    )
    key = jr.key(settings["seed"])
    greedy = Greedy(trained.policy)
    batch = rollout(environment, greedy, settings["episodes"], key=key)
    name = type(solver).__name__
    provenance = demos.Provenance(
        environment=env,
        horizon=environment.horizon,
        expert=f"{name}, {steps:,} steps, acting by its mode",
        seed=settings["seed"],
    )
    # A choice made for certain has log-probability 0; a point has no density.
    certain = jnp.zeros(batch.mask.shape, jnp.float32) if choices else None
    folder.mkdir(parents=True, exist_ok=True)
    made = demos.Demos(batch, provenance, certain)
    demos.save(made, folder / "demos.npz", overwrite=True)
    assert batch.rewards is not None
    return {"expert_return": float(jnp.mean(returns(batch, batch.rewards)))}
