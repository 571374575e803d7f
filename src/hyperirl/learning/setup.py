"""From a config, a task and demonstrations to the parts of a run."""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from hyperirl import curvature, exact, inner
from hyperirl.cloning import clone
from hyperirl.demos import Demos, starting_in
from hyperirl.demos.segments import agents_of, segmented
from hyperirl.demos.splitting import Parts, split_demos
from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.ranking import ranking_set
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
    NaturalStep,
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
from hyperirl.learning.challenging import Challenge
from hyperirl.learning.config import Config
from hyperirl.learning.given import Given
from hyperirl.learning.rate import Rate, adjustable_optimizer
from hyperirl.learning.step import Learner
from hyperirl.lstd import Features, input_normalizer, random_features
from hyperirl.networks import pooled
from hyperirl.policies import AbstractPolicy, mlp_policy, touches_bounds
from hyperirl.rewards import (
    AbstractReward,
    QuadraticReward,
    TableReward,
    fit_normalizer,
    mlp_reward,
    polynomial_reward,
    standalone,
)
from hyperirl.rollout import rollout
from hyperirl.spaces import Discrete
from hyperirl.tasks import Task
from hyperirl.trajectories import Trajectories

_NUM_FIRST, _FIRST_STEPS = 16, 200  # Episodes that show where training starts.
_NUM_STRAYING = 64  # Episodes of an untrained policy, to get lost in.
_FIRST_LEVEL = 0.2  # Of the first reward, in temperatures: staying is worth something.
_FINAL_RATE = 0.1  # Of the learning rate, at the end of the cosine schedule.


@dataclasses.dataclass(frozen=True)
class Setup:
    """The parts of a run that were checked against each other; nothing has run yet."""

    config: Config
    task: Task
    demos: Demos
    parts: Parts
    policy: AbstractPolicy
    reward: AbstractReward
    inner: AbstractInnerSolver
    estimator: AbstractEstimator
    natural: NaturalStep | None
    check: SoftBellman | None
    optimizer: optax.GradientTransformation
    rate: Rate | None  # None: the optimizer has its own.

    @property
    def environment(self) -> AbstractWorld:
        """Where the policy acts."""
        return self.task.environment


def prepare(config: Config, task: Task, demos: Demos, given: Given) -> Setup:
    """All parts of a run; one sentence if they do not fit together.

    It takes no step in the environment and writes nothing.
    """
    parts = split_demos(demos, config.seed, config.test_seed)
    train, environment = parts.train.trajectories, task.environment
    keys = _keys(config)
    policy = given.policy
    if policy is None:
        # Of all of them: the class is that of the expert, and not of a part.
        clipped = touches_bounds(demos.trajectories, environment.action_space)
        policy = make_policy(
            config, environment, train, clipped=clipped, key=keys["policy"]
        )
    reward = given.reward
    if reward is None:
        reward = make_reward(config, environment, train, policy, key=keys["reward"])
    _check_starts(config, environment)
    _check_challengers(config)
    _check_average(config)
    natural = None
    if config.natural:
        features = make_features(config, environment, train, key=keys["features"])
        natural = NaturalStep(features)
    estimator = given.estimator
    if estimator is None:
        estimator = make_estimator(
            config, environment, train, given.solver, key=keys["features"]
        )
    return Setup(
        config=config,
        task=task,
        demos=demos,
        parts=parts,
        policy=policy,
        reward=reward.soft,
        inner=make_inner(config, environment) if given.inner is None else given.inner,
        estimator=estimator,
        natural=natural,
        check=make_check(config, environment, train, given, key=keys["features"]),
        optimizer=given.optimizer or make_optimizer(config),
        rate=None if given.optimizer is not None else make_rate(config),
    )


def _keys(config: Config) -> dict[str, PRNGKeyArray]:
    names = "run policy reward features clone ranking straying".split()
    keys = jr.split(jr.key(config.seed), len(names))
    return dict(zip(names, keys, strict=True))


def _check_starts(config: Config, environment: AbstractWorld) -> None:
    shares = {name: getattr(config, name) for name in ("demo_starts", "lost_starts")}
    for name, share in shares.items():
        if share and not environment.can_start_anywhere:
            raise ValueError(
                f"`{name}` is {share}, and {config.env} cannot start in a state it was "
                "shown: write its method `state_of`, or leave the setting out."
            )


def _check_challengers(config: Config) -> None:
    if config.challenge_every and config.natural and config.trust_region:
        raise ValueError(
            f"`challenge_every` is {config.challenge_every}, and a trust region would "
            "take back what is learned from a challenger; give `trust_region=False` "
            "too, or leave the challengers out."
        )


def _check_average(config: Config) -> None:
    if config.average == 0 and not (config.natural and not config.trust_region):
        raise ValueError(
            "`average` is 0, a mean at the pace of natural steps, and "
            f"{config.env} has no such steps, or a trust region; give `natural=True` "
            "and `trust_region=False` too, or another number."
        )


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


def make_practice(setup: Setup) -> AbstractWorld:
    """Where the inner problem is solved: the task, from other first states.

    Some were demonstrated. Others the untrained policy strays into: if being lost is
    not the end of an episode it has a value, which a policy that is never lost forgets.
    """
    shown, lost = setup.config.demo_starts, setup.config.lost_starts
    environment = practice = setup.environment
    if shown:
        train = setup.parts.train.trajectories
        practice = starting_in(practice, train, shown / (1 - lost))
    if lost:
        key = _keys(setup.config)["straying"]
        strayed = rollout(environment, setup.policy, _NUM_STRAYING, key=key)
        practice = starting_in(practice, strayed, lost)
    return practice


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


def make_learner(setup: Setup) -> Learner:
    """What stays the same during a run that learns a reward."""
    config, train = setup.config, setup.parts.train
    segment, agents = config.segment, setup.environment
    if segment:
        agents = agents_of(agents, train, segment)
        train = segmented(train, segment)
    return Learner(
        environment=setup.environment,
        agents=agents,
        segment=segment or None,
        practice=make_practice(setup),
        problem=config.problem,
        inner=setup.inner,
        estimator=setup.estimator,
        natural=setup.natural,
        check=setup.check,
        challenge=make_challenge(setup),
        radius=jnp.float32(config.step_kl),
        train=train.trajectories,
        valid=setup.parts.valid.trajectories,
        key=_keys(config)["run"],
        optimizer=setup.optimizer,
        rate=setup.rate,
        inner_updates=config.inner_updates,
        adaptive=config.adaptive,
        trust_region=config.natural and config.trust_region,
    )


def make_challenge(setup: Setup) -> Challenge | None:
    """Who trains beside the policy in the loop, from the task's own starts."""
    if not setup.config.challenge_every:
        return None
    return Challenge(
        environment=setup.environment,
        solver=setup.inner,
        updates=jnp.int32(setup.config.inner_updates),
        every=setup.config.challenge_every,
    )


def make_ranking(setup: Setup) -> Trajectories | None:
    """Trajectories from random to cloned behavior; `None` without a true reward."""
    if not setup.environment.has_reward:
        return None
    keys, parts = _keys(setup.config), setup.parts
    train, valid = parts.train.trajectories, parts.valid.trajectories
    expert, _ = clone(setup.policy, train, valid, key=keys["clone"])
    return ranking_set(setup.environment, expert, key=keys["ranking"]).trajectories


def standing_alone(setup: Setup, reward: AbstractReward) -> AbstractReward:
    """What is handed out: with the level that the entropy had beside it."""
    space = setup.environment.action_space
    return standalone(reward, space, setup.config.temperature)
