"""The robots of Gymnasium's MuJoCo environments, version 5: what they see and are paid.

A runner's observation leaves out where it is (unless it is asked not to); a runner that
starts at an observation stands at 0. Velocities that are clipped in the observation
start as they were seen.
"""

import abc
import dataclasses
from typing import ClassVar

import numpy as np

from hyperirl.worlds.mujoco import AbstractRobot, Physics

Range = tuple[float, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InvertedPendulum(AbstractRobot):
    """Keep a pole upright on a cart."""

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    reset_noise_scale: float = 0.01

    def observe(self, now: Physics):
        return np.concatenate([now.positions, now.velocities], axis=1)

    def judge(self, before, now, actions, seconds):
        seen = self.observe(now)
        over = ~np.isfinite(seen).all(axis=1) | (np.abs(seen[:, 1]) > 0.2)
        return (~over).astype(np.float64), over

    def state_of(self, observations, num_positions, num_speeds):
        return observations[:, :num_positions], observations[:, num_positions:]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InvertedDoublePendulum(AbstractRobot):
    """Keep two poles upright, one on the other, on a cart."""

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1
    healthy_reward: float = 10.0
    reads: ClassVar[tuple[str, ...]] = ("site_xpos", "qfrc_constraint")

    def noise(self, rng, count, num_positions, num_speeds):
        return _push(rng, self.reset_noise_scale, count, num_positions, num_speeds)

    def observe(self, now: Physics):
        angles = now.positions[:, 1:]
        parts = [now.positions[:, :1], np.sin(angles), np.cos(angles)]
        parts.append(np.clip(now.velocities, -10, 10))
        parts.append(np.clip(now.derived["qfrc_constraint"], -10, 10)[:, :1])
        return np.concatenate(parts, axis=1)

    def judge(self, before, now, actions, seconds):
        x, _, y = now.derived["site_xpos"][:, 0].T
        over = y <= 1
        distance = 0.01 * x**2 + (y - 2) ** 2
        first, second = now.velocities[:, 1:3].T
        speed = 1e-3 * first**2 + 5e-3 * second**2
        return self.healthy_reward * ~over - distance - speed, over

    def state_of(self, observations, num_positions, num_speeds):
        """The force that is seen last is left to the physics."""
        angles = num_positions - 1
        sines = observations[:, 1 : 1 + angles]
        cosines = observations[:, 1 + angles : 1 + 2 * angles]
        positions = [observations[:, :1], np.arctan2(sines, cosines)]
        speeds = observations[:, -1 - num_speeds : -1]
        return np.concatenate(positions, axis=1), speeds


def _push(rng, scale: float, count: int, num_positions: int, num_speeds: int):
    """Uniform positions and normal velocities."""
    shift = rng.uniform(low=-scale, high=scale, size=(count, num_positions))
    return shift, rng.standard_normal((count, num_speeds)) * scale


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractRunner(AbstractRobot):
    """Run along x, and do not spend too much on it."""

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float
    exclude_current_positions_from_observation: bool = True
    num_hidden: ClassVar[int] = 1
    """How many positions say where it is."""

    @property
    def _hidden(self) -> int:
        return self.num_hidden * self.exclude_current_positions_from_observation

    def observe(self, now: Physics):
        return np.concatenate(
            [now.positions[:, self._hidden :], self.seen_speeds(now)], axis=1
        )

    def seen_speeds(self, now: Physics):
        """The velocities, as they are seen."""
        return now.velocities

    def place(self, now: Physics):
        """Where it is along x."""
        return now.positions[:, 0]

    def forward(self, before: Physics, now: Physics, seconds: float):
        """What is paid for running."""
        velocity = (self.place(now) - self.place(before)) / seconds
        return self.forward_reward_weight * velocity

    def cost(self, now: Physics, actions: np.ndarray):
        """What the motors cost; in the type of the actions, as in Gymnasium."""
        return self.ctrl_cost_weight * np.sum(np.square(actions), axis=1)

    def judge(self, before, now, actions, seconds):
        reward = self.forward(before, now, seconds) - self.cost(now, actions)
        return reward, np.zeros(len(actions), bool)

    def state_of(self, observations, num_positions, num_speeds):
        shown = num_positions - self._hidden
        nowhere = np.zeros((len(observations), self._hidden))
        positions = np.concatenate([nowhere, observations[:, :shown]], axis=1)
        return positions, observations[:, shown : shown + num_speeds]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Swimmer(AbstractRunner):
    """Three links in a viscous fluid."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 0.1
    ctrl_cost_weight: float = 1e-4
    num_hidden: ClassVar[int] = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class HalfCheetah(AbstractRunner):
    """Two legs and no way to fall."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1
    ctrl_cost_weight: float = 0.1

    def noise(self, rng, count, num_positions, num_speeds):
        return _push(rng, self.reset_noise_scale, count, num_positions, num_speeds)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractFaller(AbstractRunner):
    """A runner that is also paid for not having fallen."""

    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True

    @abc.abstractmethod
    def healthy(self, now: Physics) -> np.ndarray:
        """Whether it has not fallen."""

    def judge(self, before, now, actions, seconds):
        healthy = self.healthy(now)
        earned = self.forward(before, now, seconds) + healthy * self.healthy_reward
        over = ~healthy & self.terminate_when_unhealthy
        return earned - self.cost(now, actions), over


def _within(x: np.ndarray, bounds: Range) -> np.ndarray:
    return (bounds[0] < x) & (x < bounds[1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hopper(AbstractFaller):
    """One leg."""

    xml_file: str = "hopper.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 5e-3
    ctrl_cost_weight: float = 1e-3
    healthy_state_range: Range = (-100.0, 100.0)
    healthy_z_range: Range = (0.7, float("inf"))
    healthy_angle_range: Range = (-0.2, 0.2)

    def seen_speeds(self, now: Physics):
        return np.clip(now.velocities, -10, 10)

    def healthy(self, now: Physics):
        state = np.concatenate([now.positions[:, 2:], now.velocities], axis=1)
        upright = _within(now.positions[:, 1], self.healthy_z_range)
        upright &= _within(now.positions[:, 2], self.healthy_angle_range)
        return upright & _within(state, self.healthy_state_range).all(axis=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Walker2d(AbstractFaller):
    """Two legs."""

    xml_file: str = "walker2d_v5.xml"
    frame_skip: int = 4
    reset_noise_scale: float = 5e-3
    ctrl_cost_weight: float = 1e-3
    healthy_z_range: Range = (0.8, 2.0)
    healthy_angle_range: Range = (-1.0, 1.0)

    def seen_speeds(self, now: Physics):
        return np.clip(now.velocities, -10, 10)

    def healthy(self, now: Physics):
        upright = _within(now.positions[:, 1], self.healthy_z_range)
        return upright & _within(now.positions[:, 2], self.healthy_angle_range)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ant(AbstractFaller):
    """Four legs, and the forces of what they touch."""

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    reset_noise_scale: float = 0.1
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    main_body: int | str = 1
    healthy_z_range: Range = (0.2, 1.0)
    contact_force_range: Range = (-1.0, 1.0)
    include_cfrc_ext_in_observation: bool = True
    num_hidden: ClassVar[int] = 2
    reads: ClassVar[tuple[str, ...]] = ("xpos",)

    def __post_init__(self):
        if isinstance(self.main_body, str):
            raise TypeError("`main_body` must be the number of a body here")

    @property
    def reads_contact_forces(self) -> bool:
        return self.include_cfrc_ext_in_observation or self.contact_cost_weight != 0

    def noise(self, rng, count, num_positions, num_speeds):
        return _push(rng, self.reset_noise_scale, count, num_positions, num_speeds)

    def place(self, now: Physics):
        return now.derived["xpos"][:, int(self.main_body), 0]

    def _touch(self, now: Physics):
        return np.clip(now.derived["cfrc_ext"], *self.contact_force_range)

    def observe(self, now: Physics):
        seen = super().observe(now)
        if not self.include_cfrc_ext_in_observation:
            return seen
        touch = self._touch(now)[:, 1:].reshape(len(seen), -1)
        return np.concatenate([seen, touch], axis=1)

    def cost(self, now: Physics, actions: np.ndarray):
        cost = super().cost(now, actions)
        if not self.reads_contact_forces:
            return cost + np.zeros(len(actions))
        squares = np.square(self._touch(now)).reshape(len(actions), -1)
        return cost + self.contact_cost_weight * np.sum(squares, axis=1)

    def healthy(self, now: Physics):
        low, high = self.healthy_z_range
        state = np.concatenate([now.positions, now.velocities], axis=1)
        z = now.positions[:, 2]
        return np.isfinite(state).all(axis=1) & (low <= z) & (z <= high)


ROBOTS: dict[str, type[AbstractRobot]] = {
    "InvertedPendulum-v5": InvertedPendulum,
    "InvertedDoublePendulum-v5": InvertedDoublePendulum,
    "Swimmer-v5": Swimmer,
    "Hopper-v5": Hopper,
    "HalfCheetah-v5": HalfCheetah,
    "Walker2d-v5": Walker2d,
    "Ant-v5": Ant,
}
