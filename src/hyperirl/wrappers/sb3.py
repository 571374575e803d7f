"""Environments of Stable-Baselines3 that pay a learned reward."""

import collections
from typing import Any

import numpy as np

from hyperirl.export import RewardFunction
from hyperirl.rewards import AbstractReward
from hyperirl.wrappers.paying import ORIGINAL, Pay, Scaling

try:
    from stable_baselines3.common.callbacks import (  # pyright: ignore[reportMissingImports]
        BaseCallback,
    )
    from stable_baselines3.common.vec_env import (  # pyright: ignore[reportMissingImports]
        VecEnvWrapper,
    )
except ImportError as error:
    raise ImportError(
        "VecEnvRewardWrapper needs Stable-Baselines3, which is not installed here; "
        "install it with `pip install stable-baselines3`."
    ) from error


class VecEnvRewardWrapper(VecEnvWrapper):
    """Pays a learned reward; the true one is `info["original_env_rew"]`.

    ```
    venv = make_vec_env("CartPole-v1", n_envs=8)
    venv = VecEnvRewardWrapper(venv, hi.load_reward("reward.npz"))
    PPO("MlpPolicy", venv).learn(100_000, callback=venv.make_log_callback())
    ```
    """

    def __init__(
        self,
        venv: Any,
        reward: AbstractReward | RewardFunction,
        *,
        shift: float = 0.0,
        scale: float = 1.0,
        clip: float | None = None,
    ):
        """Pays `scale * reward + shift`, limited to `[-clip, clip]`.

        Args:
            venv: Whose steps are paid.
            reward: See `RewardWrapper`.
            shift: Added to every step.
            scale: Multiplies the reward.
            clip: The largest reward paid, after all else; None for no limit.
        """
        super().__init__(venv)
        scaling = Scaling(shift, scale, clip)
        self._pay = Pay(reward, venv.observation_space, venv.action_space, scaling)
        self._seen = self._taken = np.zeros(0)
        self._returns = np.zeros(venv.num_envs)
        self.episode_rewards: collections.deque[float] = collections.deque(maxlen=100)
        """What the last episodes were paid."""

    def make_log_callback(self) -> "EpisodesPaid":
        """Logs what episodes are paid, as `rollout/ep_rew_wrapped_mean`."""
        return EpisodesPaid(self.episode_rewards)

    def reset(self) -> Any:
        observations = self.venv.reset()
        self._seen = self._pay.observations(observations)
        self._returns[:] = 0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._taken = self._pay.actions(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, true, dones, infos = self.venv.step_wait()
        seen, self._seen = self._seen, self._pay.observations(observations)
        then, ended = self._seen.copy(), np.flatnonzero(dones)
        if ended.size:  # What is returned for them begins the next episode.
            last = [infos[i]["terminal_observation"] for i in ended]
            then[ended] = self._pay.observations(last)
        rewards = self._pay(seen, self._taken, then, np.asarray(dones))
        self._returns += rewards
        self.episode_rewards.extend(self._returns[ended].tolist())
        self._returns[ended] = 0
        for info, reward in zip(infos, true, strict=True):
            info[ORIGINAL] = reward
        return observations, rewards.astype(np.float32), dones, infos


class EpisodesPaid(BaseCallback):
    """Logs the mean of what the last episodes were paid."""

    def __init__(self, episode_rewards: collections.deque[float]):
        super().__init__()
        self._episode_rewards = episode_rewards

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._episode_rewards:
            mean = float(np.mean(self._episode_rewards))
            self.logger.record("rollout/ep_rew_wrapped_mean", mean)
