"""MuJoCo's robots, many at once, by `mujoco.batch`: bit for bit those of Gymnasium.

The simulation is the same; what Gymnasium computes around it one environment at a time
is done here for all of them in a few array operations. A `Robot` owns the formulas.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import mujoco
import mujoco.batch
import numpy as np
from gymnasium.envs.mujoco.mujoco_env import expand_model_path
from jaxtyping import Bool, Float

from hyperirl.spaces import Box
from hyperirl.worlds.stepper import AbstractStepper, Ids, Stepped

mj: Any = mujoco  # Its binary part has no types.
Model = Any
"""An `mujoco.MjModel`."""


class Physics(NamedTuple):
    """What the formulas of a robot read: of all its copies, now."""

    positions: Float[np.ndarray, "envs nq"]
    velocities: Float[np.ndarray, "envs nv"]
    derived: dict[str, np.ndarray]
    """Fields of `MjData` that follow from them, one substep behind as in Gymnasium."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractRobot(abc.ABC):
    """The task of one robot. Its fields are the options that Gymnasium takes."""

    xml_file: str
    frame_skip: int
    reset_noise_scale: float
    reads: ClassVar[tuple[str, ...]] = ()
    """The derived fields that are needed."""

    @property
    def reads_contact_forces(self) -> bool:
        """Whether `derived["cfrc_ext"]` is needed, which costs extra."""
        return False

    @abc.abstractmethod
    def observe(self, now: Physics) -> Float[np.ndarray, "envs obs"]:
        """What is seen."""

    @abc.abstractmethod
    def judge(
        self, before: Physics, now: Physics, actions: np.ndarray, seconds: float
    ) -> tuple[Float[np.ndarray, " envs"], Bool[np.ndarray, " envs"]]:
        """What a step of so many seconds pays, and whether the task is over."""

    @abc.abstractmethod
    def state_of(
        self,
        observations: Float[np.ndarray, "ids obs"],
        num_positions: int,
        num_speeds: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities that look like these observations."""

    def noise(
        self, rng: np.random.Generator, count: int, num_positions: int, num_speeds: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """What chance adds to the first positions and velocities."""
        scale = self.reset_noise_scale
        draw = lambda size: rng.uniform(low=-scale, high=scale, size=(count, size))
        return draw(num_positions), draw(num_speeds)


class MujocoStepper(AbstractStepper):
    """Copies of a robot on the threads of this machine."""

    can_start_anywhere = True
    can_save = True

    def __init__(
        self,
        robot: AbstractRobot,
        num_envs: int,
        *,
        num_threads: int = 0,
        change: Callable[[Model], None] | None = None,
    ):
        """Loads the model.

        Args:
            robot: Which.
            num_envs: How many copies.
            num_threads: To simulate on; 0: one for each core.
            change: Called with the model before anything is simulated, to change
                gravity, masses or joints.
        """
        path = expand_model_path(robot.xml_file)
        self.robot, self.num_envs = robot, num_envs
        self.model = mj.MjModel.from_xml_path(path)
        if change is not None:
            change(self.model)
        self._batch = mujoco.batch.Batch(
            self.model, num_envs, num_threads, robot.reads_contact_forces
        )
        self._positions = self._batch.bind("qpos")
        self._velocities = self._batch.bind("qvel")
        self._controls = self._batch.bind("ctrl")
        self._outputs = {name: self._batch.bind(name) for name in robot.reads}
        home = self._scratch = mj.MjData(self.model)
        self._home = home.qpos.copy(), home.qvel.copy()
        self._seconds = self.model.opt.timestep * robot.frame_skip
        self._derived = {name: np.array(x) for name, x in self._outputs.items()}
        if robot.reads_contact_forces:
            self._derived["cfrc_ext"] = np.zeros((num_envs, *home.cfrc_ext.shape))
        self.action_space = self.box = _box(self.model)
        self.observation_size = self.observe().shape[1]

    def _now(self) -> Physics:
        return Physics(self._positions, self._velocities, self._derived)

    def observe(self) -> Float[np.ndarray, "envs obs"]:
        return self.robot.observe(self._now())

    def restart(self, ids: Ids, *, rng: np.random.Generator) -> None:
        (positions, velocities), model = self._home, self.model
        shift, push = self.robot.noise(rng, len(ids), model.nq, model.nv)
        self._place(ids, positions + shift, velocities + push)

    def start_at(self, ids: Ids, observations: Float[np.ndarray, "ids obs"]) -> None:
        sizes = self.model.nq, self.model.nv
        self._place(ids, *self.robot.state_of(observations, *sizes))

    def _place(self, ids: Ids, positions: np.ndarray, velocities: np.ndarray) -> None:
        self._batch.reset(ids, stage=mj.mjtStage.mjSTAGE_NONE)
        self._positions[ids], self._velocities[ids] = positions, velocities
        self._batch.forward(ids)
        for name, output in self._outputs.items():
            self._derived[name][ids] = output[ids]
        if self.robot.reads_contact_forces:  # Gymnasium has none before a step.
            self._derived["cfrc_ext"][ids] = 0.0

    def step(
        self, actions: np.ndarray, *, idle: Bool[np.ndarray, " envs"] | None = None
    ) -> Stepped:
        actions = np.clip(actions, np.float32(self.box.low), np.float32(self.box.high))
        before = Physics(self._positions.copy(), self._velocities.copy(), self._derived)
        self._controls[:] = actions
        ids = None if idle is None else np.flatnonzero(~idle)
        self._batch.step(ids, nstep=self.robot.frame_skip)
        self._derived = {name: np.array(x) for name, x in self._outputs.items()}
        if self.robot.reads_contact_forces:
            self._derived["cfrc_ext"] = self._contact_forces()
        now = self._now()
        rewards, over = self.robot.judge(before, now, actions, self._seconds)
        never = np.zeros(self.num_envs, bool)
        return Stepped(self.observe(), rewards, over, never)

    def _contact_forces(self) -> Float[np.ndarray, "envs bodies 6"]:
        """One by one: a batch does not know what `mj_rnePostConstraint` finds."""
        forces, data = [], self._scratch
        for i in range(self.num_envs):
            self._batch.get_data(i, data)
            mj.mj_rnePostConstraint(self.model, data)
            forces.append(data.cfrc_ext.copy())
        return np.stack(forces)

    def save_state(self) -> dict[str, np.ndarray]:
        return {"state": self._batch.state.copy(), **self._derived}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self._batch.state[:] = state["state"]
        self._derived = {name: np.array(state[name]) for name in self._derived}


def _box(model: Model) -> Box:
    low, high = model.actuator_ctrlrange.astype(np.float32).T
    if np.unique(low).size > 1 or np.unique(high).size > 1:
        raise ValueError(
            "The motors of this robot have different bounds, which a batch of them "
            "does not support; give them the same with "
            "gymnasium.wrappers.RescaleAction(env, -1, 1)."
        )
    return Box(int(model.nu), float(low[0]), float(high[0]))
