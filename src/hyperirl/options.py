"""What a user can say about how a reward is learned. `None` is: not said.

What is not said is filled in later, from the task and the method: see
`hyperirl.learning.config`. So a default can never be taken for a choice. Where a limit
may be absent, the word for that is infinity, not `None`.
"""

import dataclasses
import math
import types
import typing
from typing import Any, Literal

Method = Literal[
    "fisher",
    "explicit",
    "sketch",
    "soft-bellman",
    "nhgd",
    "parl",
    "penalty",
    "matching",
    "ml-irl",
    "max-ent",
    "exact",
    "bc",
]
Cross = Literal["adjoint", "centred", "raw"]
Inner = Literal["ppo", "sac", "reinforce", "exact"]
RewardKind = Literal["mlp", "polynomial", "additive", "quadratic", "table"]
Schedule = Literal["cosine", "constant"]
DampingScale = Literal["relative", "absolute"]
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


@dataclasses.dataclass(frozen=True)
class Options:
    """The settings of learning that were given; `None` for those that were not."""

    method: Method | None = None
    """fisher (the default): implicit hypergradient, the curvature solver chosen by size
    and damping. explicit: with a dense Fisher matrix (the paper's Algorithm 1). sketch:
    with an SCFD sketch (Algorithm 3). soft-bellman: without a Fisher matrix (Yang
    2024). nhgd: a Fisher matrix kept current by rank-one updates (Kong 2026). parl: the
    sampled Hessian in its place. penalty: the value gap, penalized (Shen 2025).
    matching (the default for robots and cartpole-fixed): expert minus agent, at the
    pace of fisher. ml-irl: the same in a single loop (Zeng 2022). max-ent: maximum
    causal entropy, exactly. exact: differentiated through the exact inner solution
    (both: tabular, lqr). bc: behavioral cloning, without a reward."""
    seed: int | None = None
    """Decides everything random; 0 by default."""
    test_seed: int | None = None
    """Decides which demonstrations are kept for evaluations; `seed` by default. Give
    runs that you compare or choose from the same one."""
    steps: int | None = None
    """Outer steps. If only a time is given: as many as fit into it."""
    time: float | None = None
    """Learn for so many seconds, or until all steps are done. Compiling is not counted;
    it takes some 20 seconds the first time."""
    until_settled: bool | None = None
    """End early when the last ten steps are no better on held-out demonstrations than
    the ten before, beyond noise."""
    temperature: float | None = None
    """How much entropy is worth against reward; the problem's alpha."""
    discount: float | None = None
    """The problem's gamma; 0.99 by default."""

    policy_hidden: tuple[int, ...] | None = None
    """Sizes of the policy's hidden layers."""
    normalize: bool | None = None
    """Scale the inputs of a policy network by the spread of the demonstrations. Off on
    LQR, where an untrained policy runs away and large inputs would saturate it."""
    squash: bool | None = None
    """Keep the policy's actions within the bounds of their box: squashed by tanh, or
    clipped if a demonstrated action is at a bound. Otherwise actions are normal with a
    full covariance, and the environment may clip them."""
    reward: RewardKind | None = None
    """What is learned: a network; a polynomial of degree 2; an additive one, which is
    linear in the observation and has a cost for each number of an action; a quadratic
    form of costs; or a table."""
    reward_hidden: tuple[int, ...] | None = None
    """Sizes of the hidden layers of a reward network."""
    reward_clamp: float | None = None
    """Limits the output of a reward network to [-clamp, clamp]; inf: no limit."""

    solver: Solver | None = None
    """Who solves for v in (Fisher + damping) v = g; the method's own by default."""
    damping: float | None = None
    """Added to the diagonal of the Fisher matrix."""
    damping_scale: DampingScale | None = None
    """relative: a damping of 1 is the mean diagonal entry. absolute: it is added as it
    is, as in the paper."""
    sketch_size: int | None = None
    """Rows of a sketch, for solvers that keep one."""
    expected_fisher: bool | None = None
    """Take the Fisher matrix's expectation over actions in closed form."""
    cross: Cross | None = None
    """The cross product: an adjoint critic, centred prefix sums, or raw ones as in the
    paper."""
    critic_units: int | None = None
    """Random features of the adjoint critic, beside constant, linear and quadratic."""

    natural: bool | None = None
    """Whether steps are measured by how far they move the policy."""
    trust_region: bool | None = None
    """Take back a natural step that raised the loss and shorten the next one; lengthen
    it after good ones. Needs an inner solver with little noise."""
    step_kl: float | None = None
    """How far a natural step may move the policy, in discounted nats. In a trust region
    it is the first radius."""
    optimizer: str | None = None
    """Any optimizer of Optax that takes a learning rate, by name."""
    learning_rate: float | None = None
    """Of the reward's parameters, at the start. With natural steps, 1 is a step of
    Newton's method."""
    schedule: Schedule | None = None
    """cosine: the learning rate falls to a tenth over the run. constant: it stays."""
    clip: float | None = None
    """Longest hypergradient to follow; longer ones are scaled down to it; inf: no
    limit. Natural steps have `step_kl` instead."""

    inner: Inner | None = None
    """Who solves the inner problem."""
    inner_updates: int | None = None
    """Updates of the inner solver for each outer step."""
    average: int | None = None
    """The policy is the mean of the parameters after so many of the last inner solves.
    That removes the noise of the inner solver. 1: the last one alone. 0: more of
    them the shorter the natural steps are, so that the mean never lags behind."""
    challenge_every: int | None = None
    """Start a challenger every so many steps: a policy with new weights that trains
    beside the one in the loop. While it earns more, the reward learns from it. 0:
    never. Needs --no-trust-region."""
    demo_starts: float | None = None
    """Share of the inner solver's episodes that start in a demonstrated state. So the
    policy is trained where its likelihood is measured. The best policy is the same."""
    lost_starts: float | None = None
    """Share of the inner solver's episodes that start where an untrained policy ends
    up. So the reward keeps knowing what these states are worth."""
    segment: int | None = None
    """Cut training demonstrations into segments of at most so many steps, each
    discounted from its own start. Agent trajectories are as long. 0: no segments."""
    agent_episodes: int | None = None
    """Trajectories of the policy for each hypergradient."""
    adaptive: bool | None = None
    """Double the trajectories when the hypergradient is mostly noise, and run the inner
    solver again while it is far from the optimum."""

    def check(self) -> None:
        """One sentence if a setting is impossible."""
        for name, value in self.said().items():
            check_setting(name, value)
        shares = self.demo_starts or 0.0, self.lost_starts or 0.0
        if sum(shares) > 1:
            raise ValueError(
                "`demo_starts` and `lost_starts` are shares of all episodes, got "
                f"{shares[0]} and {shares[1]}."
            )

    def said(self) -> dict[str, Any]:
        """What was said, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) is not None
        }


NAMES: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Options))

# The least and the greatest value; nothing outside of them can work.
_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "test_seed": (0, 2**63 - 1),
    "steps": (1, 10**9),
    "agent_episodes": (4, 100_000),  # Two halves of them are compared.
    "inner_updates": (1, 10**7),
    "average": (0, 1000),
    "challenge_every": (0, 10**9),
    "segment": (0, 10**9),
    "sketch_size": (1, 10**6),
    "critic_units": (0, 10_000),
    "demo_starts": (0, 1),
    "lost_starts": (0, 1),
}
_POSITIVE = "time temperature damping learning_rate step_kl clip reward_clamp".split()
_UNLIMITED = ("time", "clip", "reward_clamp")  # May be infinite.


def check_setting(name: str, value: Any) -> None:
    """One sentence unless a setting has the right type and a possible value."""
    allowed = kinds(name)
    if not any(_is(value, kind) for kind in allowed):
        wanted = " or ".join(words(kind) for kind in allowed)
        raise ValueError(f"`{name}` must be {wanted}, got {_short(value)}.")
    if name == "discount" and not 0 < value < 1:
        raise ValueError(
            f"`discount` must be between 0 and 1, got {value}: the objective is an "
            "infinite discounted sum. The paper uses 0.99."
        )
    if name in _POSITIVE and not (
        value > 0 and (math.isfinite(value) or name in _UNLIMITED)
    ):
        raise ValueError(f"`{name}` must be positive, got {value}.")
    if name in _LIMITS:
        low, high = _LIMITS[name]
        if not low <= value <= high:
            raise ValueError(
                f"`{name}` must be at least {low} and at most {high}, got {value}."
            )
    if name.endswith("_hidden") and not all(1 <= size <= 10**5 for size in value):
        raise ValueError(f"`{name}` must be sizes of at least 1, got {_short(value)}.")


def kinds(name: str) -> tuple[Any, ...]:
    """The types a setting may have once it is said."""
    hint = typing.get_type_hints(Options)[name]
    return tuple(k for k in typing.get_args(hint) if k is not types.NoneType)


def _is(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is Literal:
        return isinstance(value, str) and value in typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(type(part) is int for part in value)
    if kind is float:
        return type(value) in (int, float) and not math.isnan(value)
    return type(value) is kind


def words(kind: Any) -> str:
    """What a value of a type is called."""
    if typing.get_origin(kind) is Literal:
        return ", ".join(map(str, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return "sizes such as 32x32"
    return {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
    }[kind]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
