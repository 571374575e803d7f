"""All that decides a run: complete, plain, and the same when it is run again.

What the user said is laid over what the paper's authors used (if asked for), over what
suits the method, over what suits the task, over what suits its spaces. Each layer fills
only what those above it leave open.
"""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperirl.demos.segments import usual_segment
from hyperirl.options import NAMES, Options, check_setting
from hyperirl.problem import Problem, problem
from hyperirl.runs import as_dataclass, mapping
from hyperirl.spaces import Discrete
from hyperirl.tasks import Task

ANY_NUMBER = 10**9  # Of steps: as many as fit into the time.
GIVEN = "given"  # In place of the name of something that was handed in as an object.
_MAY_BE_GIVEN = ("method", "solver", "reward", "policy", "inner", "optimizer")
_INFINITE = "infinite"  # JSON has no word for it.


@dataclasses.dataclass(frozen=True)
class Config:
    """How a reward is learned, with nothing left open. `Options` says what it means.

    An object that was handed in is called `given` here, and pinned by its content.
    """

    env: str
    demos: str
    demos_hash: str
    given: Mapping[str, str]
    """Objects that were handed in: their class and the hash of their content, by name.
    """
    workers: int
    """Shards of an environment of Gymnasium's, each with a worker; 0: no workers."""
    horizon: int
    """Where episodes of an environment of Gymnasium's are cut; 0: the task says."""

    method: str
    seed: int
    test_seed: int
    steps: int
    time: float
    until_settled: bool
    temperature: float
    discount: float
    policy: str
    policy_hidden: tuple[int, ...]
    normalize: bool
    squash: bool
    reward: str
    reward_hidden: tuple[int, ...]
    reward_clamp: float
    solver: str
    damping: float
    damping_scale: str
    sketch_size: int
    expected_fisher: bool
    cross: str
    critic_units: int
    natural: bool
    trust_region: bool
    step_kl: float
    optimizer: str
    learning_rate: float
    schedule: str
    clip: float
    inner: str
    inner_updates: int
    average: int
    challenge_every: int
    demo_starts: float
    lost_starts: float
    segment: int
    agent_episodes: int
    adaptive: bool

    @property
    def problem(self) -> Problem:
        """Temperature and discount."""
        return problem(self.temperature, self.discount)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `config.json`."""
        fields = dataclasses.asdict(self)
        return {name: to_plain(value) for name, value in fields.items()}


def from_json(fields: Any, where: str | Path = "config.json") -> Config:
    """A config from a run folder, checked.

    Args:
        fields: What `Config.to_json` made.
        where: What to call it in errors.
    """
    plain = {name: from_plain(item) for name, item in mapping(fields, where).items()}
    plain.setdefault("workers", 0)  # Runs of earlier versions had none...
    plain.setdefault("horizon", 0)  # ...and did not say this.
    config = as_dataclass(Config, plain, where, whole=True)
    return _checked({name: getattr(config, name) for name in plain})


def _checked(values: Mapping[str, Any]) -> Config:
    """One sentence unless every setting is possible."""
    for name in NAMES:
        if not (values[name] == GIVEN and name in _MAY_BE_GIVEN):
            check_setting(name, values[name])
    return Config(**values)


def to_plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    return _INFINITE if value == math.inf else value


def from_plain(value: Any) -> Any:
    """A setting that JSON held."""
    if value == _INFINITE:
        return math.inf
    return tuple(value) if isinstance(value, list) else value


def shown_steps(config: Config) -> int | None:
    """How many steps a run has; `None` if its time decides."""
    return None if config.steps == ANY_NUMBER else config.steps


def complete(
    said: Options,
    task: Task,
    *,
    paper: bool = False,
    demos: str = "",
    demos_hash: str = "",
    given: Mapping[str, str] | None = None,
    workers: int = 0,
) -> Config:
    """What a run does, where some things were said and others were not.

    Args:
        said: By the user.
        task: Knows what suits it.
        paper: Whether the paper's authors come before task and method.
        demos: Where the demonstrations come from...
        demos_hash: ...and the hash of their content.
        given: Objects that were handed in: class and hash, by name.
        workers: How many workers step the environment.
    """
    said.check()
    given, chosen = dict(given or {}), said.said()
    known = _general(task) | task.options.said()
    method = chosen.get("method", "fisher" if paper else known["method"])
    usual = known["natural"]
    known |= {"method": method} | _of_method(method, known)
    if paper:
        known |= _of_the_paper(method, task)
    if "time" in chosen:
        known["steps"] = ANY_NUMBER
    if chosen.get("inner") == "exact":
        known["policy_hidden"] = ()  # The exact solution is linear, or a table.
    if "inner" in given or chosen.get("inner", known["inner"]) == "exact":
        known["average"] = 1  # It does not wander, or does as it was told.
    known |= chosen
    if known["natural"] != usual and not paper:  # The task's rate is for other steps.
        known |= _optimizer(known, task) | chosen
    known |= {name: GIVEN for name in given if name in _MAY_BE_GIVEN}
    if "estimator" in given:
        known["method"] = GIVEN
    source: dict[str, Any] = dict(
        env=task.name,
        demos=demos,
        demos_hash=demos_hash,
        given=given,
        workers=workers,
        horizon=task.environment.horizon if task.environment.is_stepped else 0,
    )
    follows = _optimizer(known, task) | {
        "test_seed": known["seed"],
        "segment": _segment(known, task),
    }
    return _checked(source | follows | known)


def _general(task: Task) -> dict[str, Any]:
    """What suits the spaces of an environment, and what it can do."""
    environment = task.environment
    space = environment.action_space
    choices = isinstance(space, Discrete)
    bounded = choices or math.isfinite(space.high - space.low)
    return dict(
        method="fisher",
        seed=0,
        steps=60,
        time=math.inf,
        until_settled=False,
        temperature=task.temperature,
        discount=0.99,
        policy="network",
        policy_hidden=(32, 32) if choices else (64, 64),
        normalize=bounded,
        squash=bounded and not choices,
        reward="mlp",
        reward_hidden=(32, 32),
        reward_clamp=math.inf,
        damping=10.0,
        damping_scale="relative",
        sketch_size=64,
        expected_fisher=True,
        cross="adjoint",
        critic_units=96,
        natural=True,
        trust_region=True,
        step_kl=0.5,
        schedule="cosine",
        clip=1.0,
        inner="ppo",
        inner_updates=10 if choices else 20,
        average=4 if choices else 1,
        challenge_every=0,
        demo_starts=0.7 if environment.can_start_anywhere else 0.0,
        lost_starts=0.0,
        agent_episodes=32,
        adaptive=True,
    )


def _of_method(method: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """A method is a name for an estimator, its solver and its pace."""
    solvers = {"explicit": "explicit", "sketch": "scfd"}
    settings: dict[str, Any] = {"solver": solvers.get(method, "auto")}
    if method == "ml-irl":  # A single loop: many steps, each of little work.
        settings |= {"natural": False, "inner_updates": 1, "steps": 10 * known["steps"]}
    return settings


def _of_the_paper(method: str, task: Task) -> dict[str, Any]:
    """The authors' settings: raw prefix sums, sampled scores, plain SGD."""
    continuous = not isinstance(task.environment.action_space, Discrete)
    return dict(
        cross="raw",
        expected_fisher=False,
        damping=1e-3,
        damping_scale="absolute",
        natural=False,
        optimizer="sgd",
        learning_rate=1e-4 if method == "ml-irl" else 0.1,
        schedule="constant",
        clip=1.0,
        reward="mlp",
        reward_hidden=(64, 64) if continuous else (16,),
        reward_clamp=10.0,
        policy_hidden=(64, 64) if continuous else (32, 32),
        normalize=False,
        sketch_size=32 if continuous else 8,
        inner="sac" if continuous else "reinforce",
        inner_updates=1000 if continuous else 500,
        average=1,
        challenge_every=0,
        demo_starts=0.0,
        lost_starts=0.0,
        segment=0,
        agent_episodes=1000,
        steps=100,
        adaptive=False,
    )


def _segment(known: Mapping[str, Any], task: Task) -> int:
    """How demonstrations are cut, which follows from discount and horizon.

    Not where the agent cannot follow the expert to the start of a segment; and not
    where a method knows how the agent's visits begin.
    """
    environment = task.environment
    if not environment.can_start_anywhere or known["method"] in ("max-ent", "bc"):
        return 0
    return usual_segment(environment.horizon, known["discount"])


def _optimizer(known: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Optimizer and rate, which follow from the kind of step and of reward."""
    if known["natural"]:
        rate = 1.0 if known["trust_region"] else 0.3
        return {"optimizer": "sgd", "learning_rate": rate}
    choices = isinstance(task.environment.action_space, Discrete)
    of_network = 1e-3 if choices else 3e-3
    rate = 3e-2 if known["reward"] in ("quadratic", "table") else of_network
    return {"optimizer": "adam", "learning_rate": rate}
