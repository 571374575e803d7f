"""From a config, a task and demonstrations to the parts of a run."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import PRNGKeyArray

from hyperirl.cloning import clone
from hyperirl.demos import Demos, starting_in
from hyperirl.demos.segments import agents_of, segmented
from hyperirl.demos.splitting import Parts, split_demos
from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.ranking import ranking_set
from hyperirl.hypergradient import AbstractEstimator, NaturalStep, SoftBellman
from hyperirl.inner import AbstractInnerSolver
from hyperirl.learning.challenging import Challenge
from hyperirl.learning.config import Config
from hyperirl.learning.given import Given
from hyperirl.learning.learner import Learner
from hyperirl.learning.parts import (
    make_check,
    make_estimator,
    make_features,
    make_inner,
    make_optimizer,
    make_policy,
    make_rate,
    make_reward,
)
from hyperirl.learning.rate import Rate
from hyperirl.policies import AbstractPolicy, touches_bounds
from hyperirl.rewards import AbstractReward, standalone
from hyperirl.rollout import rollout
from hyperirl.tasks import Task
from hyperirl.trajectories import Trajectories

_NUM_STRAYING = 64  # Episodes of an untrained policy, to get lost in.


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
        challenge=make_challenge(setup, agents),
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


def make_challenge(setup: Setup, agents: AbstractWorld) -> Challenge | None:
    """Who trains beside the policy in the loop, where it is judged against it."""
    if not setup.config.challenge_every:
        return None
    return Challenge(
        environment=agents,
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
