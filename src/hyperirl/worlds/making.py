"""From what people have, to a world: an id, an environment, a factory, a vector."""

import functools
import importlib.util
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit

from hyperirl.spaces import Box
from hyperirl.worlds.engine import Engine
from hyperirl.worlds.gym import VectorStepper, copies
from hyperirl.worlds.processes import sharded
from hyperirl.worlds.stepper import AbstractStepper
from hyperirl.worlds.variants import Change, changes
from hyperirl.worlds.world import SteppedWorld

Given = str | EnvSpec | gymnasium.Env | VectorEnv | Callable[[], gymnasium.Env]
"""What a stepped world can be made of."""


def make_world(
    given: Given,
    *,
    horizon: int | None = None,
    longest: int | None = None,
    workers: int = 0,
    ray: bool = False,
    change: Change | None = None,
    **options: Any,
) -> SteppedWorld:
    """A world of Gymnasium's environments.

    Args:
        given: The id of an environment (`"Hopper-v5"`, `"gym:Hopper-v5"`, or
            `"my_module:MyEnv-v0"`), its spec, an environment that can be made again
            from its spec, a function that makes one, or a vector environment.
        horizon: Where episodes are cut; by default where the spec or a `TimeLimit`
            says.
        longest: How long demonstrations are: where episodes are cut if nothing says.
        workers: Processes that step shards of the environments; 0: this one does.
        ray: Whether the workers are actors of Ray, which must be running.
        change: Called with the model of a robot before anything is simulated, to change
            gravity, masses or motors.
        **options: Of the environment, if it is made from an id or a spec.
    """
    if options and not isinstance(given, str | EnvSpec):
        raise ValueError(
            f"Options ({', '.join(options)}) are for environments that are made from "
            "an id; put them into the one that you give."
        )
    if isinstance(given, str):
        given = _spec(given.removeprefix("gym:"))
    if isinstance(given, VectorEnv):
        return _of_vector(given, horizon, longest, workers)
    if isinstance(given, gymnasium.Env):
        given = _respec(given)
    if isinstance(given, EnvSpec):
        name, limit = given.id, given.max_episode_steps
        threads = 1 if workers else 0
        make = _from_spec(given, options, threads, change)
    elif change is not None:
        raise ValueError(
            "`change` is for robots that are made from an id; change the model in the "
            "function that you give."
        )
    else:
        first = _checked(given())
        name, limit = _name(first.spec, first), _limit(first)
        make = functools.partial(copies, given)
    horizon = _horizon(name, horizon, limit, longest)
    make_engine = functools.partial(Engine, name, make)
    if workers == 0 and not ray:
        return SteppedWorld(engine=make_engine(), horizon=horizon)
    engine = sharded(name, make_engine, workers, ray=ray)
    return SteppedWorld(engine=engine, horizon=horizon)


def _checked(made: Any) -> gymnasium.Env:
    """What a function made, if it is an environment of today's Gymnasium."""
    if not isinstance(made, gymnasium.Env):
        raise ValueError(
            f"The function must make a `gymnasium.Env`, and it made a "
            f"{type(made).__name__}."
        )
    parameters = inspect.signature(made.reset).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if "seed" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(
            f"`{type(made).__name__}.reset` takes no seed, as in the old Gym; write "
            "`reset(self, *, seed=None, options=None)`, which returns an observation "
            "and a dictionary, and let `step` return five things."
        )
    return made


def _of_vector(
    given: VectorEnv, horizon: int | None, longest: int | None, workers: int
) -> SteppedWorld:
    if workers:
        raise ValueError(
            "A vector environment steps its environments itself and cannot be dealt "
            "out to workers; give the id of an environment, or a function that makes "
            "one."
        )
    stepper, name = VectorStepper(given), _name(given.spec or _first(given).spec, given)
    engine = Engine(name, lambda num_envs: stepper, num_envs=given.num_envs)
    horizon = _horizon(name, horizon, _limit(given), longest)
    return SteppedWorld(engine=engine, horizon=horizon)


def variants_of(
    given: Given, *, horizon: int | None = None, workers: int = 0, ray: bool = False
) -> dict[str, SteppedWorld]:
    """The same robot with changed dynamics, by name; nothing for other worlds."""
    if isinstance(given, str):
        given = _spec(given.removeprefix("gym:"))
    spec = given.spec if isinstance(given, gymnasium.Env) else given
    if not isinstance(spec, EnvSpec) or _robot(spec, {}) is None:
        return {}
    space = make_world(spec).action_space
    assert isinstance(space, Box)  # As those of all robots.
    return {
        name: make_world(spec, horizon=horizon, change=change, workers=workers, ray=ray)
        for name, change in changes(space.size).items()
    }


def _horizon(
    name: str, horizon: int | None, limit: int | None, longest: int | None
) -> int:
    """What was said, else what the environment says, else what was demonstrated."""
    if horizon is not None and horizon < 1:
        raise ValueError(
            f"`horizon` is the number of steps after which episodes are cut, got "
            f"{horizon}; give 1 or more."
        )
    if horizon is not None and limit is not None and horizon > limit:
        raise ValueError(
            f"`horizon` is {horizon}, and {name} cuts its episodes after {limit} steps "
            "itself; give that or less, or an environment with a longer limit."
        )
    known = limit if horizon is None else horizon
    if known is not None:
        return known
    way_out = "`horizon=200` (`--horizon 200` on the command line)"
    if longest is None:
        raise ValueError(
            f"{name} does not say when its episodes are cut; say after how many steps "
            f"they are: {way_out}."
        )
    warnings.warn(
        f"{name} does not say when its episodes are cut; they are cut after {longest} "
        f"steps, as the demonstrations are. To have it otherwise, say {way_out}.",
        stacklevel=2,
    )
    return longest


def _from_spec(
    spec: EnvSpec, options: dict[str, Any], num_threads: int, change: Change | None
) -> Callable[[int], AbstractStepper]:
    """The fastest way there is: a batch of robots, a vector environment, or copies."""
    robot = _robot(spec, options)
    if robot is not None:
        from hyperirl.worlds.mujoco import MujocoStepper

        return functools.partial(
            MujocoStepper, robot, num_threads=num_threads, change=change
        )
    if change is not None:
        raise ValueError(
            f"{spec.id} is not one of the robots whose model can be changed; give an "
            "environment that is changed already."
        )
    if spec.vector_entry_point is not None and not spec.additional_wrappers:
        return lambda num_envs: VectorStepper(
            gymnasium.make_vec(
                spec, num_envs, vectorization_mode="vector_entry_point", **options
            )
        )
    make = lambda: gymnasium.make(spec, disable_env_checker=True, **options)
    return lambda num_envs: copies(make, num_envs)


def _robot(spec: EnvSpec, options: dict[str, Any]) -> Any:
    """The robot of a spec; None if it is none, or has options that are not known."""
    if importlib.util.find_spec("mujoco") is None or spec.additional_wrappers:
        return None
    if importlib.util.find_spec("mujoco.batch") is None:  # Before 3.17.
        return None
    from hyperirl.worlds.robots import ROBOTS

    if spec.id not in ROBOTS:
        return None
    try:
        return ROBOTS[spec.id](**{**spec.kwargs, **options})
    except TypeError:
        return None


def _spec(name: str) -> EnvSpec:
    module, _, identity = name.rpartition(":")
    if module:  # Gymnasium's own form: importing the module registers the id.
        _import(name, module)
    try:
        return gymnasium.spec(identity)
    except gymnasium.error.Error as error:
        raise ValueError(
            f"Gymnasium knows no environment {name!r}: {error} If a module of yours "
            "registers it, name it, as in `gym:module:Id`, or import it first "
            "(`--import module` on the command line)."
        ) from error


def _import(name: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except (ImportError, ValueError, TypeError) as error:
        raise ValueError(
            f"Cannot import {module!r} for the environment {name!r} ({error}); start "
            "the command in the folder of that module, or install it."
        ) from error


def _respec(environment: gymnasium.Env) -> EnvSpec:
    spec = environment.spec
    if spec is None or any(part.kwargs is None for part in spec.additional_wrappers):
        raise ValueError(
            f"{type(environment).__name__} cannot be made again, and many copies of it "
            "are needed; give a function that makes one, such as `lambda: MyEnv()`."
        )
    return spec


def _name(spec: EnvSpec | None, environment: Any) -> str:
    return type(environment).__name__ if spec is None else spec.id


def _first(environment: Any) -> Any:
    """Of a vector of environments in this process, its first; any other as it is."""
    return getattr(environment.unwrapped, "envs", [environment])[0]


def _limit(environment: Any) -> int | None:
    """Where an environment is cut: by its spec, or by a wrapper that has none."""
    spec = environment.spec
    limits = [] if spec is None else [spec.max_episode_steps]
    layer = _first(environment)
    while isinstance(layer, gymnasium.Wrapper):
        limits += [layer._max_episode_steps] if isinstance(layer, TimeLimit) else []
        layer = layer.env
    return min((limit for limit in limits if limit is not None), default=None)
