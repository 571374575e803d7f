"""All that decides a run: complete, plain, and the same when it is run again."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from hyperirl import environments
from hyperirl.problem import Problem, problem

Method = Literal["fisher", "explicit", "sketch", "ml-irl", "exact", "bc"]
Cross = Literal["adjoint", "centred", "raw"]
Inner = Literal["ppo", "sac", "reinforce", "exact"]
Solver = Literal[
    "auto",
    "explicit",
    "woodbury",
    "cg",
    "sketch-pcg",
    "scfd",
    "paper-scfd",
    "frequent-directions",
    "robust-frequent-directions",
    "neumann",
    "kfac",
    "rank-one",
    "diagonal",
    "identity",
]
RewardKind = Literal["mlp", "quadratic", "table"]
Schedule = Literal["cosine", "constant"]


@dataclasses.dataclass(frozen=True)
class LearnConfig:
    """How a reward is learned. `None` is: not said, so that what suits is filled in."""

    env: str = "cartpole"
    """cartpole, cartpole-fixed, lqr, lqr-clipped, pendulum, tabular or grid-world."""
    demos: str | None = None
    """A .npz file of demonstrations, or the name of bundled ones; those of the
    environment by default."""
    method: Method = "fisher"
    """fisher: implicit hypergradient, the solver chosen by size and damping. explicit:
    with a dense Fisher matrix (the paper's Algorithm 1). sketch: with an SCFD sketch
    (Algorithm 3). ml-irl: single loop, expert minus agent. exact: differentiated
    through the exact inner solution (tabular, lqr). bc: behavioral cloning, without a
    reward."""
    seed: int = 0
    """Decides everything random."""
    steps: int | None = None
    """Outer steps. Left open beside a time: as many as fit into it."""
    time: float | None = None
    """Learn for so many seconds, if the steps are not done before. Compiling, some 20
    seconds the first time, comes on top of them."""
    temperature: float | None = None
    """How much entropy is worth against reward; the problem's alpha."""
    discount: float | None = None
    """The problem's gamma."""

    policy_hidden: tuple[int, ...] | None = None
    """Sizes of the policy's hidden layers."""
    normalize: bool | None = None
    """Scale the inputs of a policy network by the spread of the demonstrations. Not
    where an untrained policy runs away, and the network would be blind there."""
    reward: RewardKind | None = None
    """What is learned: a network, a quadratic form, or a table."""
    reward_hidden: tuple[int, ...] | None = None
    """Sizes of the hidden layers of a reward network."""
    reward_clamp: float | None = None
    """Limits the output of a reward network to [-clamp, clamp]."""

    cross: Cross | None = None
    """The cross product: an adjoint critic, centred prefix sums, or raw ones as in the
    paper."""
    expected_fisher: bool | None = None
    """Take the Fisher matrix's expectation over actions in closed form."""
    damping: float | None = None
    """Added to the Fisher matrix, as a multiple of its mean diagonal entry."""
    absolute_damping: float | None = None
    """Added to the Fisher matrix as it is, as in the paper; replaces `damping`."""
    solver: Solver | None = None
    """Who solves for v in (Fisher + damping) v = g, in place of the method's own: auto
    for fisher, explicit, or scfd for sketch."""
    sketch_size: int | None = None
    """Rows of the sketch, for solvers that keep one."""
    critic_units: int | None = None
    """Random features of the adjoint critic, beside constant, linear and quadratic."""

    natural: bool | None = None
    """Whether steps are measured by how far they move the policy."""
    trust_region: bool | None = None
    """Whether a natural step that raised the loss is taken back and the next one is
    shorter, after good ones longer. Not where the inner solver's noise decides that."""
    step_kl: float | None = None
    """How far a natural step may move the policy, in discounted nats; in a trust
    region, the first one."""
    optimizer: str | None = None
    """Any optimizer of Optax that takes a learning rate, by name."""
    learning_rate: float | None = None
    """Of the reward's parameters, at the start. A natural step is whole at 1."""
    schedule: Schedule | None = None
    """Whether the learning rate falls to a tenth over the run, or stays."""
    clip: float | None = None
    """Longest hypergradient to follow; longer ones are scaled down to it. Natural steps
    have `step_kl` instead."""

    inner: Inner | None = None
    """Who solves the inner problem."""
    inner_updates: int | None = None
    """Updates of the inner solver for each outer step."""
    demo_starts: float | None = None
    """Share of the inner solver's episodes that start in a demonstrated state; the
    solution is the same, and known where the likelihood asks for it."""
    lost_starts: float | None = None
    """Share of them that start where a policy ends up that has learned nothing, so that
    what it is worth to be there stays known."""
    agent_episodes: int | None = None
    """Trajectories of the policy for each hypergradient."""
    adaptive: bool | None = None
    """Double the trajectories when the signal drowns in noise, and run the inner solver
    again while it is far from the optimum."""

    def __post_init__(self):
        if self.env not in environments.names:
            raise ValueError(
                f"There is no environment {self.env!r}; choose one of "
                f"{', '.join(environments.names)}."
            )
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"`{name}` must be positive, got {value}.")
        shares = self.demo_starts or 0.0, self.lost_starts or 0.0
        if min(shares) < 0 or sum(shares) > 1:
            raise ValueError(
                "`demo_starts` and `lost_starts` are shares of all episodes, got "
                f"{shares[0]} and {shares[1]}."
            )
        if self.method not in get_args(Method):
            raise ValueError(
                f"There is no method {self.method!r}; choose one of "
                f"{', '.join(get_args(Method))}."
            )
        if not 0 <= self.seed < 2**63:
            raise ValueError(
                f"`seed` must be a whole number from 0 to 2^63 - 1, got {self.seed}."
            )
        if self.discount is not None and not self.discount < 1:
            raise ValueError(
                f"`discount` must be between 0 and 1, got {self.discount}: the "
                "objective is an infinite discounted sum. The paper uses 0.99."
            )
        if self.agent_episodes is not None and self.agent_episodes > 100_000:
            raise ValueError(
                f"`agent_episodes` must be at most 100000, got {self.agent_episodes}: "
                "they are held in memory at once. The paper uses 1000."
            )
        if self.agent_episodes is not None and self.agent_episodes < 4:
            raise ValueError(
                f"`agent_episodes` must be at least 4, got {self.agent_episodes}: the "
                "noise is measured by comparing two halves of them."
            )

    @property
    def problem(self) -> Problem:
        """What a complete config says of it."""
        assert self.temperature is not None and self.discount is not None
        return problem(self.temperature, self.discount)


_POSITIVE = (
    "steps time temperature discount damping absolute_damping sketch_size "
    "learning_rate clip step_kl inner_updates reward_clamp"
).split()

_GENERAL: dict[str, Any] = dict(
    steps=60,
    discount=0.99,
    reward_hidden=(32, 32),
    cross="adjoint",
    expected_fisher=True,
    sketch_size=64,
    schedule="cosine",
    clip=1.0,
    adaptive=True,
    policy_hidden=(32, 32),
    normalize=True,
    reward="mlp",
    damping=10.0,
    critic_units=96,
    natural=False,
    trust_region=False,
    step_kl=0.3,
    inner="ppo",
    inner_updates=10,
    demo_starts=0.7,
    lost_starts=0.0,
    agent_episodes=32,
)
_SPECIAL: dict[str, dict[str, Any]] = {
    "cartpole": dict(natural=True, inner_updates=6),
    "cartpole-fixed": dict(demo_starts=0.63, lost_starts=0.07),
    "lqr": dict(
        steps=30,
        natural=True,
        trust_region=True,
        step_kl=0.5,
        policy_hidden=(64, 64),
        normalize=False,
        reward="quadratic",
        damping=0.1,
        critic_units=0,
        agent_episodes=64,
        demo_starts=0.0,
    ),
    "pendulum": dict(policy_hidden=(64, 64), inner_updates=20),
    "tabular": dict(
        steps=30,
        natural=True,
        trust_region=True,
        step_kl=0.5,
        policy_hidden=(),
        reward="table",
        damping=0.1,
        critic_units=0,
        inner="exact",
        demo_starts=0.0,
    ),
}
_SPECIAL["lqr-clipped"] = _SPECIAL["lqr"]
_SPECIAL["grid-world"] = _SPECIAL["tabular"]


_PLAIN_RATES = {"pendulum": 3e-3, "lqr": 3e-2, "lqr-clipped": 3e-2}
_PLAIN_RATES |= {"tabular": 3e-2, "grid-world": 3e-2}


def complete(config: LearnConfig) -> LearnConfig:
    """The same config with nothing left open: what is written into the run folder."""
    defaults = _GENERAL | _SPECIAL.get(config.env, {}) | {"demos": config.env}
    defaults["temperature"] = environments.usual_temperature(config.env)
    if config.method == "ml-irl":
        defaults["natural"] = False
    given = {name: getattr(config, name) for name in ("natural", "trust_region")}
    defaults |= {name: value for name, value in given.items() if value is not None}
    if defaults["natural"]:
        trusted = defaults["trust_region"]
        defaults |= {"optimizer": "sgd", "learning_rate": 1.0 if trusted else 0.3}
    else:
        rate = _PLAIN_RATES.get(config.env, 1e-3)
        defaults |= {"optimizer": "adam", "learning_rate": rate}
    if config.env.startswith("lqr") and config.inner == "exact":
        defaults["policy_hidden"] = ()
    if config.method == "ml-irl":
        defaults |= {"inner_updates": 1, "steps": 10 * defaults["steps"]}
    solvers = {"explicit": "explicit", "sketch": "scfd"}
    defaults["solver"] = solvers.get(config.method, "auto")
    if config.time is not None:
        del defaults["steps"]
    open_fields = {
        name: value for name, value in defaults.items() if getattr(config, name) is None
    }
    return dataclasses.replace(config, **open_fields)


def paper(config: LearnConfig) -> LearnConfig:
    """The settings of the paper's authors: raw prefix sums, sampled scores, plain SGD.

    They fill only what was not said: `None`. A damping that was said replaces theirs.
    """
    continuous = config.env in ("lqr", "lqr-clipped", "pendulum")
    settings: dict[str, Any] = dict(
        cross="raw",
        expected_fisher=False,
        absolute_damping=1e-3,
        natural=False,
        optimizer="sgd",
        learning_rate=1e-4 if config.method == "ml-irl" else 0.1,
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
        demo_starts=0.0,
        lost_starts=0.0,
        agent_episodes=1000,
        steps=100,
        adaptive=False,
    )
    if config.damping is not None:
        del settings["absolute_damping"]
    said = {
        field.name
        for field in dataclasses.fields(config)
        if getattr(config, field.name) is not None
    }
    return dataclasses.replace(
        config, **{k: v for k, v in settings.items() if k not in said}
    )


def from_dict(fields: Mapping[str, Any]) -> LearnConfig:
    """A config from a run folder; JSON knows lists and no tuples."""
    known = {field.name for field in dataclasses.fields(LearnConfig)}
    if unknown := sorted(set(fields) - known):
        raise ValueError(
            f"The config has unknown fields {', '.join(unknown)}; it was written by "
            "another version of hyperirl. Install that one to go on with the run."
        )
    listed = lambda value: tuple(value) if isinstance(value, list) else value
    values: dict[str, Any] = {name: listed(value) for name, value in fields.items()}
    return LearnConfig(**values)
