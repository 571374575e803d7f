"""Fresh policies: trained from scratch on a frozen reward, with a fixed budget.

A reward is worth what a policy that never saw the demonstrations learns from it.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.demos import starting_in
from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.ranking import untrained
from hyperirl.inner import PPO, ROBOTS, Reward, chunks, is_robot, ppo_from_scratch
from hyperirl.policies import (
    AbstractPolicy,
    CensoredHead,
    GaussianHead,
    Policy,
    log_probs,
    mlp_policy,
)
from hyperirl.problem import Problem
from hyperirl.programs import compiled
from hyperirl.rollout import rollout
from hyperirl.spaces import Box
from hyperirl.trajectories import Trajectories, returns

MakePolicy = Callable[[AbstractWorld, PRNGKeyArray], AbstractPolicy]
OnProgress = Callable[[float, str], None]


@dataclasses.dataclass(frozen=True)
class FreshTraining:
    """How a fresh policy is trained: the same for every reward it is compared with."""

    budget: int = 1_000_000
    """Environment steps."""
    first_rate: float = 1e-3
    """The learning rate at the start..."""
    last_rate: float = 1e-5
    """...and at the end; it falls linearly, so that the policy settles."""
    num_checks: int = 40
    """How often return and likelihood are measured on the way."""
    check_episodes: int = 16
    """Episodes played for that."""
    final_checks: int = 4
    """How many times as many the trained policy is judged by."""
    num_envs: int | None = None
    """Environments that act at the same time. By default 64, and 16 where the host
    steps a robot: smaller batches, and so more updates for its steps."""
    num_steps: int = 128
    """Steps of each between two updates."""
    demo_starts: float = 0.7
    """Share of the episodes that start in demonstrated states."""

    def __post_init__(self):
        if self.num_envs is not None and self.budget < self.steps_per_update:
            raise ValueError(
                f"`budget` is {self.budget} environment steps, less than the "
                f"{self.steps_per_update} of one update; give several hundred thousand."
            )
        if min(self.num_checks, self.check_episodes, self.final_checks) < 1:
            raise ValueError(
                "A fresh policy is measured at least once, on at least one episode, "
                f"got num_checks={self.num_checks}, check_episodes="
                f"{self.check_episodes} and final_checks={self.final_checks}."
            )
        if not 0 < self.last_rate <= self.first_rate < math.inf:
            raise ValueError(
                "The learning rate falls from `first_rate` to `last_rate`, both "
                f"positive; got {self.first_rate} and {self.last_rate}."
            )
        if not 0 <= self.demo_starts <= 1:
            raise ValueError(
                f"`demo_starts` is a share of the episodes, got {self.demo_starts}."
            )

    def fitting(self, environment: AbstractWorld) -> "FreshTraining":
        """With nothing left open."""
        if self.num_envs is not None:
            return self
        usual = ROBOTS["num_envs"] if is_robot(environment) else PPO.num_envs
        return dataclasses.replace(self, num_envs=usual)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of one update."""
        if self.num_envs is None:
            raise ValueError(
                "How many environments act depends on the world, and `num_envs` was "
                "not given; give it, or call `training.fitting(environment)` first."
            )
        return self.num_envs * self.num_steps

    @property
    def num_updates(self) -> int:
        """As many as the budget pays for."""
        return self.budget // self.steps_per_update


@dataclasses.dataclass(frozen=True)
class Curve:
    """What was measured during the training, in order."""

    steps: tuple[int, ...]
    """Environment steps so far; the first entry is the untrained policy."""
    env_return: tuple[float, ...]
    """Mean undiscounted return under the true reward; NaN where it is not known."""
    nll: tuple[float, ...]
    """Mean of `-sum_t log pi(a_t | s_t)` over the test episodes."""


@dataclasses.dataclass(frozen=True, eq=False)
class Fresh:
    """A policy trained from scratch, and what it is worth."""

    policy: AbstractPolicy
    curve: Curve
    returns: Float[Array, " episodes"] | None
    """True and undiscounted, of its own episodes; `None` if that is not known."""
    nll: Float[Array, " test"]
    """`-sum_t log pi(a_t | s_t)` of each test episode."""


def usual_policy(environment: AbstractWorld, key: PRNGKeyArray) -> Policy:
    """Two hidden layers of 64. Actions in a finite box are squashed into it."""
    space = environment.action_space
    bounded = isinstance(space, Box) and not _unbounded(environment)
    return mlp_policy(
        environment.observation_size,
        space,
        key=key,
        covariance="state" if bounded else "full",
        squash=bounded,
    )


def policies_like(policy: AbstractPolicy) -> MakePolicy:
    """Makes untrained policies of the same class as a trained one.

    A policy of the user's own has its arrays drawn anew.
    """
    if not isinstance(policy, Policy):
        return lambda environment, key: untrained(policy, key)
    layers, head = policy.network.layers, policy.head
    clipped = isinstance(head, CensoredHead)
    gaussian = head if clipped or isinstance(head, GaussianHead) else None

    def make(environment: AbstractWorld, key: PRNGKeyArray) -> Policy:
        return mlp_policy(
            environment.observation_size,
            environment.action_space,
            key=key,
            hidden=[layer.weight.shape[0] for layer in layers[:-1]],
            covariance="diagonal" if gaussian is None else gaussian.covariance,
            squash=gaussian is not None and gaussian.bounds is not None and not clipped,
            censor=clipped,
            normalizer=policy.normalizer,
            use_bias=layers[0].bias is not None,
            dtype=layers[0].weight.dtype,
        )

    return make


def train_fresh(
    environment: AbstractWorld,
    reward: Reward,
    problem: Problem,
    test: Trajectories,
    *,
    key: PRNGKeyArray,
    starts: Trajectories | None = None,
    training: FreshTraining | None = None,
    policy_for: MakePolicy = usual_policy,
    on_progress: OnProgress | None = None,
) -> Fresh:
    """Trains a new policy by PPO on a frozen reward.

    Args:
        environment: Where to act; its true reward is only measured, never trained on,
            unless it is the `reward`.
        reward: What the policy is to maximize, with its entropy.
        problem: Temperature and discount.
        test: Held-out episodes of the expert, for the likelihood.
        key: For the initial weights and the experience.
        starts: Demonstrations in whose states a share of the episodes starts: the
            likelihood asks what the policy does there.
        training: Budget and schedule.
        policy_for: Makes the untrained policy.
        on_progress: Called with the fraction done and a few words.
    """
    training = (training or FreshTraining()).fitting(environment)
    policy_key, init_key, solve_key, measure_key = jr.split(key, 4)
    policy = policy_for(environment, policy_key)
    practice, can_start = environment, environment.can_start_anywhere
    if starts is not None and training.demo_starts > 0 and can_start:
        practice = starting_in(environment, starts, training.demo_starts)
    solver = _solver(environment, training, 0.0, 1.0)
    state = solver.init(practice, policy, key=init_key)
    checks = min(training.num_checks, training.num_updates)
    parts = chunks(training.num_updates, checks)

    def check(policy: AbstractPolicy, i: int):
        key = jr.fold_in(measure_key, i)
        return _measure(environment, policy, test, training.check_episodes, key)

    # NaN where the true reward is not known.
    mean = lambda draws: math.nan if draws is None else float(jnp.mean(draws))
    measured = [check(policy, 0)]
    for i, part in enumerate(parts, 1):
        state = _solver(environment, training, part.start, part.end).improve(
            practice,
            reward,
            state,
            problem,
            part.num_updates,
            key=jr.fold_in(solve_key, i),
        )
        measured.append(check(state.policy, i))
        if on_progress is not None:
            on_progress(part.end, _words(*map(mean, measured[-1])))
    updates = itertools.accumulate((part.num_updates for part in parts), initial=0)
    curve = Curve(
        steps=tuple(done * training.steps_per_update for done in updates),
        env_return=tuple(mean(drawn) for drawn, _ in measured),
        nll=tuple(mean(nll) for _, nll in measured),
    )
    final_key = jr.fold_in(measure_key, checks + 1)
    judged = measure(environment, state.policy, test, key=final_key, training=training)
    return Fresh(state.policy, curve, *judged)


def _words(returned: float, nll: float) -> str:
    return f"NLL {nll:.1f}" if math.isnan(returned) else f"return {returned:.1f}"


def _solver(
    environment: AbstractWorld, training: FreshTraining, start: float, end: float
) -> PPO:
    """For the part of the training between two shares of it.

    Where actions have no bounds, states may run away from an untrained policy. What
    follows an action there is mostly the luck of later ones, and had better be left to
    the critic.
    """
    rate = lambda share: (1 - share) * training.first_rate + share * training.last_rate
    settings = dict(critic_rate=2 * rate(start))
    if _unbounded(environment):
        settings = dict(critic_rate=rate(start) / 2, trace=0.8)
    elif is_robot(environment):
        settings = dict(critic_rate=rate(start))
    return ppo_from_scratch(
        environment,
        learning_rate=rate(start),
        final_rate=rate(end) / rate(start),
        num_envs=training.num_envs,
        num_steps=training.num_steps,
        **settings,
    )


def _unbounded(environment: AbstractWorld) -> bool:
    space = environment.action_space
    return isinstance(space, Box) and not math.isfinite(space.high - space.low)


def measure(
    environment: AbstractWorld,
    policy: AbstractPolicy,
    test: Trajectories,
    *,
    key: PRNGKeyArray,
    training: FreshTraining | None = None,
) -> tuple[Float[Array, " episodes"] | None, Float[Array, " test"]]:
    """True returns of a policy's own episodes, and its NLL on each test episode.

    There are no returns where the true reward is not known.
    """
    training = FreshTraining() if training is None else training
    # By the program that made the curve, several times: it is compiled already.
    drawn = [
        _measure(environment, policy, test, training.check_episodes, key)
        for key in jr.split(key, training.final_checks)
    ]
    nll = drawn[0][1]
    returned = [returned for returned, _ in drawn if returned is not None]
    return jnp.concatenate(returned) if returned else None, nll


def _measure(environment, policy, test, num_episodes, key):
    """True returns of its own episodes, and its likelihood on those of the expert."""
    measured = _play if environment.is_stepped else _play_compiled
    return measured(environment, policy, test, num_episodes, key)


def _play(environment, policy, test, num_episodes, key):
    nll = -jnp.sum(log_probs(policy, test), axis=1)
    if not environment.has_reward:
        return None, nll
    episodes = rollout(environment, policy, num_episodes, key=key)
    assert episodes.rewards is not None
    return returns(episodes, episodes.rewards), nll


_play_compiled = compiled(_play, level=1)


def steps_to_reach(curve: Curve, threshold: float) -> float | None:
    """Environment steps until the return is first at `threshold`; `None` if never.

    Interpolated between measurements.
    """
    pairs = list(zip(curve.steps, curve.env_return, strict=True))
    if pairs[0][1] >= threshold:
        return 0.0
    for (steps, value), (next_steps, next_value) in itertools.pairwise(pairs):
        if next_value >= threshold:
            share = (threshold - value) / (next_value - value)
            return steps + share * (next_steps - steps)
    return None


def retraining_ratios(
    learned: Sequence[Curve], true: Sequence[Curve], threshold: float
) -> list[float] | None:
    """Steps on the learned reward over steps on the true one, for each pair of seeds.

    `None` if a policy did not reach the threshold, or needed no training to.
    """
    ratios = []
    for ours, theirs in zip(learned, true, strict=True):
        steps = steps_to_reach(ours, threshold), steps_to_reach(theirs, threshold)
        if steps[0] is None or not steps[1]:
            return None
        ratios.append(steps[0] / steps[1])
    return ratios
