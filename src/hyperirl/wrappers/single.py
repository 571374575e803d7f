"""One environment of Gymnasium that pays a learned reward."""

from typing import Any

import gymnasium
import numpy as np

from hyperirl.export import RewardFunction
from hyperirl.rewards import AbstractReward
from hyperirl.wrappers.paying import ORIGINAL, Pay, Scaling


class RewardWrapper(gymnasium.Wrapper):
    """Pays a learned reward; the true one is `info["original_env_rew"]`.

    ```
    env = RewardWrapper(gymnasium.make("CartPole-v1"), hi.load_reward("reward.npz"))
    ```
    """

    def __init__(
        self,
        env: gymnasium.Env,
        reward: AbstractReward | RewardFunction,
        *,
        shift: float = 0.0,
        scale: float = 1.0,
        clip: float | None = None,
    ):
        """Pays `scale * reward + shift`, limited to `[-clip, clip]`.

        Args:
            env: Whose steps are paid.
            reward: A reward, or a function `(state, action, next_state, done)` of
                batches of steps, as in `imitation`.
            shift: Added to every step.
            scale: Multiplies the reward.
            clip: The largest reward paid, after all else; None for no limit.
        """
        super().__init__(env)
        scaling = Scaling(shift, scale, clip)
        self._pay = Pay(reward, env.observation_space, env.action_space, scaling)
        self._seen = np.zeros(0)
        self._resting = False  # The episode is over: what comes is no step.

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._seen, self._resting = self._pay.observations([observation]), False
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step that only resets, as in Gymnasium's `Autoreset`, is paid nothing."""
        taken = self._pay.actions([action])
        observation, true, terminated, truncated, info = self.env.step(action)
        seen, self._seen = self._seen, self._pay.observations([observation])
        done, reward = bool(terminated or truncated), 0.0
        if not self._resting:
            reward = float(self._pay(seen, taken, self._seen, np.array([done]))[0])
        self._resting = done
        return observation, reward, terminated, truncated, {**info, ORIGINAL: true}
