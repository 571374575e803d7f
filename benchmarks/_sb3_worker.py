"""One training by Stable-Baselines3, on a reward exported for NumPy or the true one.

Run by `sb3_retrain.py`, in an environment that has stable-baselines3 and no hyperirl.
Reads what to do as JSON from its argument, prints what came out as JSON. For a robot:

    python benchmarks/_sb3_worker.py '{"env": "Hopper-v5", "algorithm": "plain-ppo",
        "reward": "exported", "seed": 0, "steps": 500000, "every": 50000,
        "gamma": null}'
"""

import json
import sys
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

NUM_EPISODES = 20


class Paid(gymnasium.Wrapper):
    """Pays an exported reward in place of the true one."""

    def __init__(self, env, reward):
        super().__init__(env)
        self.reward, self.seen = reward, None

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        return self.seen, info

    def step(self, action):
        paid = float(self.reward(self.seen, action))
        self.seen, _, terminated, truncated, info = self.env.step(action)
        return self.seen, paid, terminated, truncated, info


class Curve(BaseCallback):
    """The mean true return of greedy episodes, now and then."""

    def __init__(self, env: str, every: int, seed: int):
        super().__init__()
        self.every, self.points = every, []
        self.envs = make_vec_env(env, n_envs=10, seed=1000 + seed)

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.every * (len(self.points) + 1):
            returns, _ = evaluate_policy(
                self.model,
                self.envs,
                n_eval_episodes=NUM_EPISODES,
                deterministic=True,
                return_episode_rewards=True,
                warn=False,
            )
            self.points.append([self.num_timesteps, float(np.mean(returns))])
        return True


def ppo(envs, seed: int, gamma: float = 0.98) -> PPO:
    """The usual tuned settings for CartPole; no entropy bonus."""
    return PPO(
        "MlpPolicy",
        envs,
        n_steps=32,
        batch_size=256,
        gae_lambda=0.8,
        gamma=gamma,
        n_epochs=20,
        ent_coef=0.0,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        seed=seed,
        device="cpu",
    )


def sac(envs, seed: int, gamma: float = 0.99) -> SAC:
    """The usual tuned settings for Pendulum: the defaults, and a larger rate."""
    return SAC(
        "MlpPolicy", envs, learning_rate=1e-3, gamma=gamma, seed=seed, device="cpu"
    )


def plain(envs, seed: int, gamma: float = 0.99) -> PPO:
    """The defaults, for robots: as many steps an update as with one environment."""
    steps = 2048 // envs.num_envs
    return PPO("MlpPolicy", envs, n_steps=steps, gamma=gamma, seed=seed, device="cpu")


def main() -> None:
    torch.set_num_threads(1)
    task = json.loads(sys.argv[1])
    wrap = lambda env: env
    if task["reward"] is not None:
        sys.path.insert(0, task["reward"])
        from hyperirl_numpy import load_reward

        reward = load_reward(f"{task['reward']}/reward.npz")
        wrap = lambda env: Paid(env, reward)
    known = {"ppo": (ppo, 8), "plain-ppo": (plain, 8), "sac": (sac, 1)}
    algorithm, num_envs = known[task["algorithm"]]
    envs = make_vec_env(
        task["env"], n_envs=num_envs, seed=task["seed"], wrapper_class=wrap
    )
    curve = Curve(task["env"], task["every"], task["seed"])
    start = time.perf_counter()
    options = {} if task["gamma"] is None else {"gamma": task["gamma"]}
    algorithm(envs, task["seed"], **options).learn(task["steps"], callback=curve)
    print(json.dumps({"curve": curve.points, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
