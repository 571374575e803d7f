"""Many environments of Gymnasium that pay a learned reward."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from hyperirl.export import RewardFunction
from hyperirl.rewards import AbstractReward
from hyperirl.wrappers.paying import ORIGINAL, Pay, Scaling


class VectorRewardWrapper(VectorWrapper):
    """Pays a learned reward; the true ones are `infos["original_env_rew"]`.

    Whenever the environments reset themselves: a step that only resets is paid nothing,
    and a function that looks at the next observation sees the last one of the episode,
    not the first one of the next.
    """

    def __init__(
        self,
        env: VectorEnv,
        reward: AbstractReward | RewardFunction,
        *,
        shift: float = 0.0,
        scale: float = 1.0,
        clip: float | None = None,
    ):
        """Pays `scale * reward + shift`, limited to `[-clip, clip]`.

        Args:
            env: Whose steps are paid.
            reward: See `RewardWrapper`.
            shift: Added to every step.
            scale: Multiplies the reward.
            clip: The largest reward paid, after all else; None for no limit.
        """
        super().__init__(env)
        scaling = Scaling(shift, scale, clip)
        observations, actions = env.single_observation_space, env.single_action_space
        self._pay = Pay(reward, observations, actions, scaling)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._rests = AutoresetMode(mode) == AutoresetMode.NEXT_STEP
        self._seen = np.zeros(0)
        self._resting = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._seen = self._pay.observations(observations)
        self._resting = np.zeros(self.num_envs, bool)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        taken = self._pay.actions(actions)
        observations, true, terminated, truncated, infos = self.env.step(actions)
        seen, self._seen = self._seen, self._pay.observations(observations)
        done = np.logical_or(terminated, truncated)
        rewards = self._pay(seen, taken, self._seen_last(infos), done)
        rewards = np.where(self._resting, 0.0, rewards)
        self._resting = done & self._rests
        true = {ORIGINAL: true, f"_{ORIGINAL}": np.ones(self.num_envs, bool)}
        return observations, rewards, terminated, truncated, {**infos, **true}

    def _seen_last(self, infos: dict[str, Any]) -> np.ndarray:
        """What the steps led to: not the first observations of new episodes."""
        ended = np.flatnonzero(infos.get("_final_obs", ()))
        if not ended.size:
            return self._seen
        last = self._seen.copy()
        last[ended] = self._pay.observations([infos["final_obs"][i] for i in ended])
        return last
