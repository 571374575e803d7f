"""Demonstrations of a published expert: stochastic TRPO policies of 2016, in HDF5.

They are somebody else's: Gaussians around a network's output, clipped to the bounds,
and not soft-optimal for any temperature we know. Their log-probabilities are known, as
those of clipped Gaussians, and so is the floor.

    python benchmarks/published_expert.py Hopper-v1_trpo.h5 --env Hopper-v5 \
        --episodes 60 --out published.npz
"""

import dataclasses
import math
from pathlib import Path
from typing import Annotated

import gymnasium
import h5py
import numpy as np
import tyro
from scipy.special import log_ndtr

import hyperirl as hi


class Published:
    """A policy of such a file; by default the last, which is the expert."""

    def __init__(self, path: Path, env: gymnasium.Env, seed: int):
        with h5py.File(path) as file:
            snapshots = file["snapshots"]
            policy = snapshots[max(snapshots)]["GaussianPolicy"]
            norm = policy["obsnorm/Standardizer"]
            self.mean = norm["mean_1_D"][0]
            self.std = np.sqrt(norm["meansq_1_D"][0] - self.mean**2)
            hidden = "hidden/FeedforwardNet/layer_{}/AffineLayer"
            names = [hidden.format(0), hidden.format(2), "out/AffineLayer"]
            self.layers = [(policy[n]["W"][()], policy[n]["b"][0]) for n in names]
            self.scale = np.exp(policy["logstdevs_1_Da"][0])
        self.low, self.high = env.action_space.low, env.action_space.high
        self.rng = np.random.default_rng(seed)

    def __call__(self, observation: np.ndarray) -> tuple[np.ndarray, float]:
        """The action as it is executed, and its log-probability."""
        x = (observation - self.mean) / self.std
        *hidden, (weights, bias) = self.layers
        for w, b in hidden:
            x = np.tanh(x @ w + b)
        mean = x @ weights + bias
        drawn = mean + self.scale * self.rng.standard_normal(len(mean))
        action = np.clip(drawn, self.low, self.high).astype(np.float32)
        z = lambda x: (x - mean) / self.scale
        inside = -0.5 * z(action) ** 2 - np.log(self.scale) - 0.5 * math.log(2 * np.pi)
        below, above = action <= self.low, action >= self.high
        at_low, at_high = log_ndtr(z(self.low)), log_ndtr(-z(self.high))
        return action, float(
            np.sum(np.where(below, at_low, np.where(above, at_high, inside)))
        )


@dataclasses.dataclass(frozen=True)
class Record:
    """Plays a published expert and keeps what it did."""

    policy: Annotated[Path, tyro.conf.Positional]
    """The HDF5 file."""
    out: Path
    env: str = "Hopper-v5"
    episodes: int = 60
    seed: int = 0

    def run(self) -> None:
        """Writes the demonstrations."""
        env = gymnasium.make(self.env)
        expert = Published(self.policy, env, self.seed)
        said = f"published TRPO expert {self.policy.name}, stochastic"
        demos = hi.demos.record(env, expert, self.episodes, seed=self.seed, expert=said)
        hi.demos.save(demos, self.out)
        returned = np.asarray(demos.trajectories.rewards).sum(axis=1)
        print(f"return {returned.mean():.0f} ± {returned.std():.0f}")


if __name__ == "__main__":
    tyro.cli(Record).run()
