"""The protocol: what a learned reward is worth, in numbers beside their limits.

docs/evaluation.md says what each of them can and cannot tell. Nothing here may be used
to select a model, stop a run or tune a setting: it looks at the true reward and at the
test episodes. What needs the true reward is left out where that is not known.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl.cloning import clone
from hyperirl.demos import Demos
from hyperirl.demos.splitting import Parts, split_demos
from hyperirl.environments import AbstractWorld
from hyperirl.evaluation.distance import coverage, epic_distance
from hyperirl.evaluation.fresh import (
    Fresh,
    FreshTraining,
    MakePolicy,
    OnProgress,
    measure,
    policies_like,
    retraining_ratios,
    steps_to_reach,
    train_fresh,
    usual_policy,
)
from hyperirl.evaluation.intervals import interval, percentiles, picks
from hyperirl.evaluation.ranking import VERSION as RANKING_VERSION
from hyperirl.evaluation.ranking import (
    RankingSet,
    constant_control,
    rank_correlation,
    ranking_set,
    resampled_rank_correlations,
    untrained_control,
)
from hyperirl.evaluation.solved import solved_policy
from hyperirl.inner import Reward, true_reward
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import AbstractReward, rewards_of
from hyperirl.rollout import rollout
from hyperirl.tasks import Task
from hyperirl.trajectories import Trajectories, returns

PROTOCOL_VERSION = 4  # Since rewards have their level and are also trained on hard.
_REACHED = 0.95  # Of the way from random to expert: when retraining is done.
_REFERENCE_EPISODES = 64
_HARD_TEMPERATURE = 1e-6  # As good as none.


@dataclasses.dataclass(frozen=True)
class Subject:
    """What is judged, and what it was learned from."""

    task: Task
    demos: Demos
    seed: int
    """With which the run split the demonstrations."""
    problem: Problem
    """The temperature and discount it was learned for."""
    policy: AbstractPolicy
    """The policy of the run; fresh ones are of its class."""
    reward: AbstractReward | None = None
    """What was learned; none for behavioral cloning."""
    test_seed: int | None = None
    """With which it kept episodes for evaluations, if with another one."""

    @property
    def environment(self) -> AbstractWorld:
        """Where it was learned."""
        return self.task.environment

    @functools.cached_property
    def parts(self) -> Parts:
        """How the run split the demonstrations."""
        return split_demos(self.demos, self.seed, self.test_seed)

    @property
    def policy_for(self) -> MakePolicy:
        """Makes fresh policies of the run's class."""
        return policies_like(self.policy)


def judge(
    subject: Subject,
    *,
    seeds: int = 2,
    training: FreshTraining | None = None,
    transfer: bool = True,
    ranking: RankingSet | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """What a run is worth, as plain numbers: `evaluation.json`.

    A metric is `{"mean", "low", "high", "n"}` with a 95 % interval; a number if it has
    none; `None` if it is not defined or not known.

    Args:
        subject: What is judged.
        seeds: Fresh policies for each reward.
        training: How they are trained; with the task's own budget by default.
        transfer: Whether to train in changed dynamics, too.
        ranking: The trajectories to rank; `ranking_of_demos` by default.
        on_progress: Called with the fraction done and a few words.
    """
    if seeds < 1:
        raise ValueError(f"At least one fresh policy is needed, got seeds={seeds}.")
    training = FreshTraining(subject.task.budget) if training is None else training
    training = training.fitting(subject.environment)
    known = subject.environment.has_reward
    if ranking is None and known:
        ranking = ranking_of_demos(subject.environment, subject.demos)
    result = _references(subject, training, ranking) | {"true_reward": known}
    if subject.reward is None:
        result |= _of_policy(subject, training)
    else:
        trainer = _Trainer(subject, training, seeds, on_progress)
        result |= _of_reward(subject, subject.reward, ranking)
        result |= _of_fresh(trainer, subject.reward, transfer, result)
        result |= _solved(subject, subject.reward)
    settings = dataclasses.asdict(training) | {"seeds": seeds}
    return result | {"settings": settings | _settings(subject, ranking)}


def _settings(subject: Subject, ranking: RankingSet | None) -> dict[str, Any]:
    """What decides the numbers."""
    settings = {
        "protocol_version": PROTOCOL_VERSION,
        "usual_budget": subject.task.budget,
        "split_seed": subject.seed,
        "test_seed": subject.seed if subject.test_seed is None else subject.test_seed,
        "test_episodes": subject.parts.test.num_episodes,
        "temperature": float(subject.problem.temperature),
        "discount": float(subject.problem.discount),
    }
    if ranking is not None:
        episodes = ranking.trajectories.num_episodes
        settings |= {"ranking_version": ranking.version, "ranking_episodes": episodes}
    return settings


def ranking_of_demos(environment: AbstractWorld, demos: Demos) -> RankingSet:
    """The ranking set of these demonstrations, the same one in every evaluation.

    A clone stands in for the expert, who may not be known. The true reward has no part
    in making it.
    """
    policy_key, clone_key, play_key = jr.split(jr.key(RANKING_VERSION), 3)
    parts = split_demos(demos, RANKING_VERSION)
    policy = usual_policy(environment, policy_key)
    expert, _ = clone(
        policy, parts.train.trajectories, parts.valid.trajectories, key=clone_key
    )
    return ranking_set(environment, expert, key=play_key)


class _Trainer:
    """Trains fresh policies on a reward, and tells how far it is."""

    def __init__(
        self,
        subject: Subject,
        training: FreshTraining,
        seeds: int,
        on_progress: OnProgress | None,
    ):
        self.subject, self.training, self.seeds = subject, training, seeds
        self._on_progress, self._done, self._total = on_progress, 0, 1

    def expect(self, rewards: int) -> None:
        """Says how many rewards will be trained on, for the progress."""
        self._total = rewards * self.seeds

    def soft(self, world: AbstractWorld, reward: Reward, words: str) -> list[Fresh]:
        """With entropy, often started in demonstrated states: as in learning."""
        starts = self.subject.parts.train.trajectories
        return self._train(world, reward, self.subject.problem, starts, words)

    def hard(self, world: AbstractWorld, reward: Reward, words: str) -> list[Fresh]:
        """Without entropy, from the task's own starts: as a stranger would."""
        problem = dataclasses.replace(
            self.subject.problem, temperature=jnp.float32(_HARD_TEMPERATURE)
        )
        words = f"{words}, the hard way"
        return self._train(world, reward, problem, None, words)

    def _train(
        self,
        world: AbstractWorld,
        reward: Reward,
        problem: Problem,
        starts: Trajectories | None,
        words: str,
    ) -> list[Fresh]:
        found = []
        for seed in range(self.seeds):
            title = f"{words}, fresh policy {seed + 1}"
            found.append(
                train_fresh(
                    world,
                    reward,
                    problem,
                    self.subject.parts.test.trajectories,
                    key=jr.fold_in(jr.key(PROTOCOL_VERSION), seed),
                    starts=starts,
                    training=self.training,
                    policy_for=self.subject.policy_for,
                    on_progress=lambda share, words, title=title: self._tell(
                        share, f"{title}: {words}"
                    ),
                )
            )
            self._done += 1
        return found

    def _tell(self, share: float, words: str) -> None:
        if self._on_progress is not None:
            self._on_progress((self._done + share) / self._total, words)


def _of_fresh(
    trainer: _Trainer,
    reward: AbstractReward,
    transfer: bool,
    references: Mapping[str, Any],
) -> dict[str, Any]:
    """Fresh policies on the learned reward and, if it is known, on the true one."""
    subject, home = trainer.subject, trainer.subject.environment
    if not home.has_reward:
        trainer.expect(1)
        learned = trainer.soft(home, reward.soft, "learned reward")
        return _likelihood([fresh.nll for fresh in learned], subject.parts)
    truth = true_reward(home)
    worlds = subject.task.variants(home) if transfer else {}
    trainer.expect(4 + 2 * len(worlds))
    learned = trainer.soft(home, reward.soft, "learned reward")
    true = trainer.soft(home, truth, "true reward")
    result = _likelihood([fresh.nll for fresh in learned], subject.parts)
    result |= {
        "env_return": _returns(learned),
        "true_reward_nll": interval([fresh.nll for fresh in true]),
        "true_reward_return": _returns(true),
        "hard_return": _returns(trainer.hard(home, reward, "learned reward")),
        "hard_true_return": _returns(trainer.hard(home, truth, "true reward")),
        "transfer": {
            name: {
                "env_return": _returns(trainer.soft(world, reward.soft, name)),
                "true_reward_return": _returns(
                    trainer.soft(world, truth, f"{name}, true reward")
                ),
            }
            for name, world in worlds.items()
        },
    }
    if "expert_return" not in references:
        return result
    return result | _retraining(learned, true, references)


def _returns(policies: Sequence[Fresh]) -> dict[str, Any]:
    return interval([fresh.returns for fresh in policies])


def _of_policy(subject: Subject, training: FreshTraining) -> dict[str, Any]:
    """A policy without a reward, such as a clone: nothing is trained."""
    test = subject.parts.test.trajectories
    returned, nll = measure(
        subject.environment, subject.policy, test, key=jr.key(1), training=training
    )
    result = _likelihood([nll], subject.parts)
    return result if returned is None else result | {"env_return": interval(returned)}


def _references(
    subject: Subject, training: FreshTraining, ranking: RankingSet | None
) -> dict[str, Any]:
    """What does not depend on the learned reward."""
    policy_key, clone_key, cloned_key, random_key = jr.split(jr.key(0), 4)
    environment, parts = subject.environment, subject.parts
    train, valid, test = (part.trajectories for part in parts)
    policy = subject.policy_for(environment, policy_key)
    cloned, _ = clone(policy, train, valid, key=clone_key)
    returned, nll = measure(
        environment, cloned, test, key=cloned_key, training=training
    )
    if ranking is None or returned is None:
        return {"bc_nll": interval(nll)}
    episodes = rollout(environment, ranking.random, _REFERENCE_EPISODES, key=random_key)
    found = {
        "random_return": interval(_true_returns(environment, episodes)),
        "bc_nll": interval(nll),
        "bc_return": interval(returned),
    }
    shown = subject.demos.trajectories
    if environment.is_stepped and shown.rewards is None:  # Nobody knows any more.
        return found
    return {"expert_return": interval(_true_returns(environment, shown))} | found


@eqx.filter_jit
def _true_returns(environment: AbstractWorld, episodes: Trajectories):
    return returns(episodes, rewards_of(true_reward(environment), episodes))


def _likelihood(nll: Sequence[Any], parts: Parts) -> dict[str, Any]:
    """PolicyNLL, the floor and the gap between them, episode by episode."""
    floor = parts.test.expert_nll
    found = {"policy_nll": interval(nll)}
    if floor is None:
        return found | dict.fromkeys(("floor", "gap", "gap_percent"))
    floor = np.asarray(floor, np.float64)
    gap = interval(np.asarray(nll, np.float64) - floor[None, :])
    found |= {"floor": interval(floor), "gap": gap}
    if abs(floor.mean()) < 1e-6:  # An expert without noise: no share of nothing.
        return found | {"gap_percent": None}
    scale = 100 / abs(floor.mean())
    percent = {
        name: None if gap[name] is None else scale * gap[name]
        for name in ("mean", "low", "high")
    }
    return found | {"gap_percent": percent | {"n": gap["n"]}}


def _solved(subject: Subject, reward: AbstractReward) -> dict[str, Any]:
    """Likelihood and return of the policy that the reward asks for, untrained."""
    environment = subject.environment
    policy = solved_policy(environment, reward.soft, subject.problem)
    if policy is None:
        return {}
    test = subject.parts.test.trajectories
    returned, nll = measure(environment, policy, test, key=jr.key(PROTOCOL_VERSION))
    likelihood = _likelihood([nll], subject.parts)
    return {
        "solved_nll": likelihood["policy_nll"],
        "solved_gap_percent": likelihood["gap_percent"],
        "solved_return": None if returned is None else interval(returned),
    }


def _of_reward(
    subject: Subject, reward: AbstractReward, ranking: RankingSet | None
) -> dict[str, Any]:
    """What can be said of the reward without training on it."""
    if ranking is None:
        return {}
    environment, episodes = subject.environment, ranking.trajectories
    found, soft = (rank_correlation(r, episodes) for r in (reward, reward.soft))
    count = episodes.num_episodes
    draws = resampled_rank_correlations(reward, episodes, jnp.asarray(picks(count)))
    constant = constant_control(episodes)
    untrained = untrained_control(reward, episodes, key=jr.key(ranking.version))
    ranked = {
        "rank_corr": percentiles(float(found.total), draws, count),
        "rank_corr_per_step": _number(found.per_step),
        "rank_corr_soft": _number(soft.total),
        "rank_corr_constant": _number(constant.total),
        "rank_corr_constant_per_step": _number(constant.per_step),
        "rank_corr_untrained": _number(untrained.total),
        "rank_corr_untrained_per_step": _number(untrained.per_step),
    }
    if environment.is_stepped:  # The true reward is no function to compare with.
        return ranked
    where = coverage(episodes, environment.action_space)
    distance = epic_distance(reward, true_reward(environment), where, subject.problem)
    return ranked | {"epic_distance": _number(distance)}


def _retraining(
    learned: Sequence[Fresh], true: Sequence[Fresh], references: Mapping[str, Any]
) -> dict[str, Any]:
    """Environment steps to the threshold, on both rewards, and their ratio."""
    ends = ("random_return", "expert_return")
    random, expert = (references[name]["mean"] for name in ends)
    threshold = random + _REACHED * (expert - random)
    ours = [fresh.curve for fresh in learned]
    theirs = [fresh.curve for fresh in true]
    ratios = retraining_ratios(ours, theirs, threshold)
    steps = lambda curves: [steps_to_reach(curve, threshold) for curve in curves]
    plain = lambda curves: [dataclasses.asdict(curve) for curve in curves]
    return {
        "retraining_ratio": None if ratios is None else interval(ratios),
        "retraining": {
            "threshold": threshold,
            "learned_steps": steps(ours),
            "true_steps": steps(theirs),
        },
        "curves": {"learned": plain(ours), "true": plain(theirs)},
    }


def _number(value: Any) -> float | None:
    """A plain number; `None` for what is undefined."""
    return float(value) if math.isfinite(float(value)) else None
