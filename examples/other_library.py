"""Train with another library on a learned reward: Gymnasium, Stable-Baselines3.

`python examples/other_library.py runs/first/reward.npz` trains SB3's PPO on CartPole,
which needs `pip install stable-baselines3`. Without it, random actions are scored.
"""

import importlib.util
import sys

import gymnasium as gym
import numpy as np

import hyperirl as hi


def wrapped(reward) -> gym.Env:
    """CartPole that pays the learned reward; the true one stays in the infos."""
    return hi.RewardWrapper(gym.make("CartPole-v1"), reward)


def returns(env: gym.Env, act, episodes: int = 5) -> tuple[float, float]:
    """The mean return of a policy: by the learned reward, and by the true one."""
    learned, true = 0.0, 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        over = False
        while not over:
            step = env.step(act(observation))
            observation, paid, terminated, truncated, info = step
            learned, true = learned + float(paid), true + info["original_env_rew"]
            over = terminated or truncated
    return learned / episodes, true / episodes


def main(path: str, steps: int = 50_000) -> tuple[float, float]:
    """Trains on the learned reward only, then shows both."""
    env = wrapped(hi.load_reward(path))
    if importlib.util.find_spec("stable_baselines3") is None:
        print("Stable-Baselines3 is not installed; these are random actions.")
        chance = np.random.default_rng(0)
        act = lambda observation: int(chance.integers(2))
    else:
        from stable_baselines3 import PPO

        model = PPO("MlpPolicy", env, seed=0, gamma=0.99, device="cpu")
        model.learn(steps)
        act = lambda observation: int(model.predict(observation)[0])
    learned, true = returns(env, act)
    print(f"learned return {learned:.1f}, true return {true:.1f}")
    return learned, true


if __name__ == "__main__":
    main(sys.argv[1])
