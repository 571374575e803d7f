"""From a config to the parts of a run."""

import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import PRNGKeyArray

from hyperirl import curvature, demos, environments, inner
from hyperirl.cloning import clone
from hyperirl.demos import Demos, check_against, starting_in
from hyperirl.demos.splitting import Parts
from hyperirl.environments import AbstractEnvironment
from hyperirl.evaluate.ranking import ranking_set
from hyperirl.hypergradient import (
    MLIRL,
    AbstractCross,
    AbstractEstimator,
    Adjoint,
    Centred,
    Exact,
    Fisher,
    NaturalStep,
    Raw,
)
from hyperirl.inner import (
    SAC,
    AbstractInnerSolver,
    Reinforce,
    RunningMean,
    ppo_for,
)
from hyperirl.learning.config import LearnConfig
from hyperirl.learning.rate import Rate, adjustable_optimizer
from hyperirl.learning.step import Learner
from hyperirl.lstd import Features, input_normalizer, random_features
from hyperirl.policies import Policy, linear_gaussian, mlp_policy
from hyperirl.rewards import (
    AbstractReward,
    QuadraticReward,
    TableReward,
    fit_normalizer,
    mlp_reward,
)
from hyperirl.rollout import rollout
from hyperirl.spaces import Box, Discrete
from hyperirl.trajectories import Trajectories

_NUM_STRAYING = 64  # Episodes of an untrained policy, to get lost in.
_FIRST_LEVEL = 0.2  # Of the first reward, in temperatures: staying is worth something.
_FINAL_RATE = 0.1  # Of the learning rate, at the end of the cosine schedule.


def load_demos(config: LearnConfig) -> Demos:
    """The demonstrations that a complete config names."""
    return demos.load(config.demos or config.env)


def make_environment(config: LearnConfig, loaded: Demos) -> AbstractEnvironment:
    """Where the demonstrations come from, which they are checked against.

    With the options they were collected with, if they are of that environment.
    """
    if loaded.provenance.environment == config.env:
        environment = demos.environment_of(loaded.provenance)
    else:
        environment = environments.make(config.env)
    assert environment is not None  # The config has one of our names.
    check_against(loaded, environment)
    return environment


def make_policy(
    config: LearnConfig,
    environment: AbstractEnvironment,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> Policy:
    """The policy class of the inner problem, untrained.

    Its inputs are normalized by the demonstrations: an angle of 0.1 rad and a position
    of 1 m are both news, and a network that must first find out learns little else.
    Actions of a bounded box are squashed into it; those of LQR have a full covariance,
    also where it clips them. The exact solution of LQR is linear, so its class is.
    """
    space = environment.action_space
    linear = isinstance(environment, environments.LQR)
    squashed = isinstance(space, Box) and not linear
    hidden = config.policy_hidden or ()
    if linear and config.inner == "exact":
        if hidden:
            raise ValueError(
                f"The exact solution of LQR is a linear policy, and `policy_hidden` is "
                f"{hidden}; leave it out, or solve by `inner=ppo`."
            )
        obs, act = environment.B.shape
        scale = 0.5 * jnp.eye(act, dtype=jnp.float32)
        return linear_gaussian(jnp.zeros((act, obs), jnp.float32), scale)
    return mlp_policy(
        environment.observation_size,
        space,
        key=key,
        hidden=hidden,
        covariance="state" if squashed else "full",
        squash=squashed,
        normalizer=fit_normalizer(train) if hidden and config.normalize else None,
        use_bias=bool(hidden),
    )


def make_reward(
    config: LearnConfig,
    environment: AbstractEnvironment,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> AbstractReward:
    """The reward before it has learned anything."""
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
        if not isinstance(environment, environments.Tabular):
            raise ValueError(
                f"A table of rewards needs finitely many states, and {config.env} has "
                "a continuum; use `reward=mlp`."
            )
        num_actions = environment.action_space.num_actions
        return TableReward(jnp.zeros((size, num_actions), jnp.float32))
    assert config.reward_hidden is not None  # The config is complete.
    return mlp_reward(
        size,
        space,
        key=key,
        hidden=config.reward_hidden,
        clamp=config.reward_clamp,
        normalizer=fit_normalizer(train),
        level=_FIRST_LEVEL * float(config.problem.temperature),
    )


def make_inner(
    config: LearnConfig, environment: AbstractEnvironment
) -> AbstractInnerSolver:
    """Who solves the inner problem."""
    match config.inner:
        case "ppo":
            return ppo_for(environment)
        case "sac":
            return SAC()
        case "reinforce":
            return Reinforce(
                baseline=RunningMean(), num_episodes=20, horizon=environment.horizon
            )
        case "exact":
            return inner.Exact()
    raise ValueError(f"There is no inner solver {config.inner!r}.")


def make_practice(
    config: LearnConfig,
    environment: AbstractEnvironment,
    train: Trajectories,
    untrained: Policy,
    *,
    key: PRNGKeyArray,
) -> AbstractEnvironment:
    """Where the inner problem is solved: the task, from other first states.

    Some were demonstrated. Others the `untrained` policy strays into: if being lost is
    not the end of an episode it has a value, which a policy that is never lost forgets.
    """
    shown, lost = config.demo_starts or 0.0, config.lost_starts or 0.0
    practice = environment
    if shown:
        practice = starting_in(practice, train, shown / (1 - lost))
    if lost:
        strayed = rollout(environment, untrained, _NUM_STRAYING, key=key)
        practice = starting_in(practice, strayed, lost)
    return practice


def make_estimator(
    config: LearnConfig,
    environment: AbstractEnvironment,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> AbstractEstimator:
    """The hypergradient of the method."""
    if config.method == "ml-irl":
        return MLIRL()
    if config.method == "exact":
        return Exact(environment)
    cross = make_cross(config, environment, train, key=key)
    assert config.expected_fisher is not None  # The config is complete.
    return Fisher(make_solver(config), cross, expected=config.expected_fisher)


def make_solver(config: LearnConfig) -> curvature.AbstractSolver:
    """Who solves for `v`."""
    assert config.damping is not None and config.sketch_size is not None
    if config.absolute_damping is not None:
        damping = curvature.Absolute(config.absolute_damping)
    else:
        damping = curvature.Relative(config.damping)
    size = config.sketch_size
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
            return curvature.SCFD(damping=damping, size=size)
        case "paper-scfd":
            return curvature.PaperSCFD(damping=damping, size=size)
        case "frequent-directions":
            return curvature.FrequentDirections(damping=damping, size=size)
        case "robust-frequent-directions":
            return curvature.RobustFrequentDirections(damping=damping, size=size)
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
    config: LearnConfig,
    environment: AbstractEnvironment,
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


def make_features(
    config: LearnConfig,
    environment: AbstractEnvironment,
    train: Trajectories,
    *,
    key: PRNGKeyArray,
) -> Features:
    """What the critics of reward gradients are linear in."""
    return random_features(
        input_normalizer(train),
        environment.action_space,
        key=key,
        num_units=config.critic_units or 0,
        polynomial=1 if config.reward == "table" else 2,
    )


def make_optimizer(config: LearnConfig) -> optax.GradientTransformation:
    """Clipping by norm, then the named optimizer, whose rate is set at every step."""
    clip = None if config.natural else config.clip
    return adjustable_optimizer(config.optimizer or "adam", clip)


def make_rate(config: LearnConfig) -> Rate:
    """The learning rate's schedule."""
    constant = config.schedule == "constant"
    return Rate(
        first=jnp.float32(config.learning_rate or 1e-3),
        last_share=jnp.float32(1.0 if constant else _FINAL_RATE),
    )


def check_parts(
    config: LearnConfig, environment: AbstractEnvironment, parts: Parts
) -> None:
    """Makes the parts that may be refused; takes no step in the environment."""
    train, key = parts.train.trajectories, jr.key(0)
    config.problem  # noqa: B018  Says what is wrong with temperature and discount.
    make_policy(config, environment, train, key=key)
    if config.method == "bc":
        return
    make_reward(config, environment, train, key=key)
    make_inner(config, environment)
    make_estimator(config, environment, train, key=key)
    make_optimizer(config)
    for name in ("demo_starts", "lost_starts"):
        if getattr(config, name) and not environment.can_start_anywhere:
            raise ValueError(
                f"`{name}` is {getattr(config, name)}, and {config.env} cannot start "
                "in a state it was shown: write its method `state_of`, or leave the "
                "setting out."
            )


def make_learner(
    config: LearnConfig,
    environment: AbstractEnvironment,
    parts: Parts,
    optimizer: optax.GradientTransformation | None = None,
) -> tuple[Learner, AbstractReward, Policy]:
    """All parts of a run that learns a reward, from a complete config."""
    train, valid = parts.train.trajectories, parts.valid.trajectories
    keys = jr.split(jr.key(config.seed), 7)
    run_key, policy_key, reward_key, feature_key, clone_key, rank_key, stray_key = keys
    policy = make_policy(config, environment, train, key=policy_key)
    ranking = None
    if environment.has_reward:
        expert, _ = clone(policy, train, valid, key=clone_key)
        ranking = ranking_set(environment, expert, key=rank_key).trajectories
    natural = None
    if config.natural:
        natural = NaturalStep(
            make_features(config, environment, train, key=feature_key)
        )
    learner = Learner(
        environment=environment,
        practice=make_practice(config, environment, train, policy, key=stray_key),
        problem=config.problem,
        inner=make_inner(config, environment),
        estimator=make_estimator(config, environment, train, key=feature_key),
        natural=natural,
        radius=jnp.float32(config.step_kl or 1.0),
        train=train,
        valid=valid,
        ranking=ranking,
        key=run_key,
        optimizer=make_optimizer(config) if optimizer is None else optimizer,
        rate=make_rate(config) if optimizer is None else None,
        inner_updates=config.inner_updates or 1,
        adaptive=bool(config.adaptive),
        trust_region=bool(config.natural and config.trust_region),
    )
    reward = make_reward(config, environment, train, key=reward_key)
    return learner, reward, policy
