"""The parts of a run, as its config asks for them."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from hyperirl import curvature, exact, inner
from hyperirl.environments import AbstractWorld
from hyperirl.hypergradient import (
    MLIRL,
    PARL,
    AbstractCross,
    AbstractEstimator,
    Adjoint,
    Centred,
    Exact,
    Fisher,
    MaxEnt,
    Penalty,
    Raw,
    RunningFisher,
    SoftBellman,
)
from hyperirl.inner import (
    SAC,
    AbstractInnerSolver,
    Averaged,
    Paced,
    Reinforce,
    RunningMean,
    Window,
    ppo_for,
)
from hyperirl.learning.config import Config
from hyperirl.learning.given import Given
from hyperirl.learning.rate import Rate, adjustable_optimizer
from hyperirl.lstd import Features, input_normalizer, random_features
from hyperirl.networks import pooled
from hyperirl.policies import AbstractPolicy, mlp_policy
from hyperirl.rewards import (
    AbstractReward,
    QuadraticReward,
    TableReward,
    fit_normalizer,
    mlp_reward,
    polynomial_reward,
)
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete
from hyperirl.trajectories import Trajectories

_NUM_FIRST, _FIRST_STEPS = 16, 200  # Episodes that show where training starts.
_FIRST_LEVEL = 0.2  # Of the first reward, in temperatures: staying is worth something.
_FINAL_RATE = 0.1  # Of the learning rate, at the end of the cosine schedule.


def make_policy(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    *,
    clipped: bool = False,
    key: PRNGKeyArray,
) -> AbstractPolicy:
    """The policy class of the inner problem, untrained.

    Its inputs are normalized by the demonstrations: an angle of 0.1 rad and a position
    of 1 m are both news, and a network that must first find out learns little else.
    Actions of a bounded box are squashed into it, or clipped to it if those of the
    demonstrations are (`clipped`): at a bound a squashed density is infinite. Where the
    solution has a closed form and is what the inner solver returns, the class is that
    of the solution.
    """
    space, hidden = environment.action_space, config.policy_hidden
    if config.inner == "exact":
        if hidden:
            raise ValueError(
                f"The exact solution of {config.env} has no hidden layers, and "
                f"`policy_hidden` is {hidden}; leave it out, or solve by `inner=ppo`."
            )
        return exact.require_closed_form(environment).blank_policy()
    return mlp_policy(
        environment.observation_size,
        space,
        key=key,
        hidden=hidden,
        covariance="state" if config.squash else "full",
        squash=config.squash and not clipped,
        censor=config.squash and clipped,
        normalizer=fit_normalizer(train) if hidden and config.normalize else None,
        use_bias=bool(hidden),
    )


def make_reward(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    untrained: AbstractPolicy,
    *,
    key: PRNGKeyArray,
) -> AbstractReward:
    """The reward before it has learned anything.

    A polynomial stops growing at some distance from what it was made for. That is the
    demonstrations, and what an untrained policy sees: between them it must not be flat,
    or nothing says which way to go.
    """
    size, space = environment.observation_size, environment.action_space
    if config.reward == "quadratic":
        if isinstance(space, Discrete):
            raise ValueError(
                "A quadratic reward needs actions that are vectors, and those of "
                f"{config.env} are choices; use `reward=mlp`."
            )
        root = lambda n: 0.5 * jnp.eye(n, dtype=jnp.float32)
        return QuadraticReward(root(size), root(space.size))
    if config.reward == "table":
        if not (isinstance(space, Discrete) and _one_hot(train)):
            raise ValueError(
                "A table of rewards needs choices as actions and one-hot states as "
                f"observations, and {config.env} has others; use `reward=mlp`."
            )
        return TableReward(jnp.zeros((size, space.num_actions), jnp.float32))
    level = _FIRST_LEVEL * float(config.problem.temperature)
    if config.reward in ("polynomial", "additive"):
        horizon = min(environment.horizon, _FIRST_STEPS)
        first = rollout(environment, untrained, _NUM_FIRST, horizon=horizon, key=key)
        seen = pooled(input_normalizer(train), input_normalizer(first))
        mixed = config.reward == "polynomial"
        return polynomial_reward(space, seen, level=level, mixed=mixed)
    return mlp_reward(
        size,
        space,
        key=key,
        hidden=config.reward_hidden,
        clamp=None if math.isinf(config.reward_clamp) else config.reward_clamp,
        normalizer=fit_normalizer(train),
        level=level,
    )


def _one_hot(trajectories: Trajectories) -> bool:
    """Whether every observation is one of finitely many states."""
    seen = np.asarray(trajectories.observations[:, :-1])[np.asarray(trajectories.mask)]
    return bool(np.all((seen == 0) | (seen == 1)) and np.all(seen.sum(axis=1) == 1))


def make_inner(config: Config, environment: AbstractWorld) -> AbstractInnerSolver:
    """Who solves the inner problem."""
    solver = _plain_inner(config, environment)
    if config.average == 1:
        return solver
    return Averaged(solver, Window(config.average) if config.average else Paced())


def _plain_inner(config: Config, environment: AbstractWorld) -> AbstractInnerSolver:
    match config.inner:
        case "ppo":
            return ppo_for(environment)
        case "sac":
            return SAC().fitting(environment)
        case "reinforce":
            return Reinforce(
                baseline=RunningMean(), num_episodes=20, horizon=environment.horizon
            )
        case "exact":
            return inner.Exact()
    raise ValueError(f"There is no inner solver {config.inner!r}.")


def make_estimator(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    solver: curvature.AbstractSolver | None,
    *,
    key: PRNGKeyArray,
) -> AbstractEstimator:
    """The hypergradient of the method."""
    match config.method:
        case "ml-irl" | "matching":
            return MLIRL()
        case "exact":
            return Exact(environment)
        case "max-ent":
            return MaxEnt(environment)
        case "soft-bellman":
            return SoftBellman(make_features(config, environment, train, key=key))
        case "penalty":
            features = make_features(config, environment, train, key=key)
            return Penalty(features, damping=make_damping(config))
    cross = make_cross(config, environment, train, key=key)
    match config.method:
        case "nhgd":
            return RunningFisher(cross, damping=make_damping(config))
        case "parl":
            return PARL(cross, damping=make_damping(config))
    solver = make_solver(config) if solver is None else solver
    return Fisher(solver, cross, expected=config.expected_fisher)


def make_damping(config: Config) -> curvature.AbstractDamping:
    """What is added to the Fisher matrix, or to what stands in its place."""
    scales = {"relative": curvature.Relative, "absolute": curvature.Absolute}
    return scales[config.damping_scale](config.damping)


def make_solver(config: Config) -> curvature.AbstractSolver:
    """Who solves for `v`."""
    damping = make_damping(config)
    sketch: dict[str, Any] = dict(damping=damping, size=config.sketch_size)
    match config.solver:
        case "auto":
            return curvature.Auto(damping=damping)
        case "explicit":
            return curvature.Explicit(damping=damping)
        case "woodbury":
            return curvature.Woodbury(damping=damping)
        case "cg":
            return curvature.ConjugateGradient(damping=damping)
        case "sketch-pcg":
            return curvature.SketchPCG(damping=damping)
        case "scfd":
            return curvature.SCFD(**sketch)
        case "paper-scfd":
            return curvature.PaperSCFD(**sketch)
        case "frequent-directions":
            return curvature.FrequentDirections(**sketch)
        case "robust-frequent-directions":
            return curvature.RobustFrequentDirections(**sketch)
        case "neumann":
            return curvature.Neumann(damping=damping)
        case "kfac":
            return curvature.KFAC(damping=damping)
        case "rank-one":
            return curvature.RankOne(damping=damping)
        case "diagonal":
            return curvature.Diagonal(damping=damping)
        case "identity":
            return curvature.Identity(damping=damping)
    raise ValueError(f"There is no curvature solver {config.solver!r}.")


def make_cross(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> AbstractCross:
    """The estimate of the cross product."""
    if config.cross == "raw":
        return Raw()
    if config.cross == "centred":
        return Centred()
    return Adjoint(make_features(config, environment, train, key=key))


def make_check(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    given: Given,
    *,
    key: PRNGKeyArray,
) -> SoftBellman | None:
    """What a hypergradient of the Fisher form is compared with at every step.

    It has the features of the adjoint critic, and costs little beside it.
    """
    implicit = config.method in ("fisher", "explicit", "sketch")
    if given.estimator is not None or not implicit or config.cross != "adjoint":
        return None
    return SoftBellman(make_features(config, environment, train, key=key))


def make_features(
    config: Config,
    environment: AbstractWorld,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> Features:
    """What the critics of reward gradients are linear in."""
    return random_features(
        input_normalizer(train),
        environment.action_space,
        key=key,
        num_units=config.critic_units,
        polynomial=1 if config.reward == "table" else 2,
    )


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Clipping by norm, then the named optimizer, whose rate is set at every step."""
    clip = math.inf if config.natural else config.clip
    return adjustable_optimizer(config.optimizer, clip)


def make_rate(config: Config) -> Rate:
    """The learning rate's schedule."""
    constant = config.schedule == "constant"
    return Rate(
        first=jnp.float32(config.learning_rate),
        last_share=jnp.float32(1.0 if constant else _FINAL_RATE),
    )
