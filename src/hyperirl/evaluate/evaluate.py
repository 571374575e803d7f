"""The protocol: what a learned reward is worth, in numbers beside their limits.

docs/evaluation.md says what each of them can and cannot tell. Nothing here may be used
to select a model, stop a run or tune a setting: it looks at the true reward and at the
test episodes.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl.cloning import clone
from hyperirl.demos import Demos
from hyperirl.demos.splitting import Parts, split_demos
from hyperirl.environments import AbstractEnvironment
from hyperirl.evaluate.distance import coverage, epic_distance
from hyperirl.evaluate.fresh import (
    Fresh,
    MakePolicy,
    Progress,
    Training,
    default_policy,
    measure,
    retraining_ratios,
    steps_to_reach,
    train_fresh,
)
from hyperirl.evaluate.intervals import interval, percentiles, picks
from hyperirl.evaluate.ranking import VERSION as RANKING_VERSION
from hyperirl.evaluate.ranking import (
    RankingSet,
    constant_control,
    rank_correlation,
    ranking_set,
    resampled_rank_correlations,
    untrained_control,
)
from hyperirl.evaluate.solved import solved_policy
from hyperirl.evaluate.transfer import changed_dynamics
from hyperirl.inner import Reward, true_reward
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import AbstractReward, rewards_of
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories, returns

PROTOCOL_VERSION = 4  # Since rewards have a level, and are also trained on hard.
_REACHED = 0.95  # Of the way from random to expert: when retraining is done.
_REFERENCE_EPISODES = 64
_HARD_TEMPERATURE = 1e-6  # As good as none.
_OF_SOLVED = ("solved_nll", "solved_gap_percent", "solved_return")


def evaluate(
    environment: AbstractEnvironment,
    reward: AbstractReward,
    demos: Demos,
    problem: Problem,
    *,
    seed: int,
    parts: Parts | None = None,
    ranking: RankingSet | None = None,
    policy_for: MakePolicy = default_policy,
    seeds: int = 2,
    training: Training | None = None,
    transfer: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What a learned reward is worth, as plain numbers: `evaluation.json`.

    A metric is `{"mean", "low", "high", "n"}` with a 95 % interval; a number if it has
    none; `None` if it is not defined or not known.

    Args:
        environment: Where the demonstrations come from.
        reward: What was learned.
        demos: All demonstrations.
        problem: The temperature and discount it was learned for.
        seed: With which the run split the demonstrations.
        parts: How they were split, if not by `split_demos`.
        ranking: The trajectories to rank; `ranking_of_demos` by default.
        policy_for: Makes a fresh policy, of the class that the run used.
        seeds: Fresh policies for each reward.
        training: How they are trained.
        transfer: Whether to train in changed dynamics, too.
        progress: Called with the fraction done and a few words.
    """
    if seeds < 1:
        raise ValueError(f"At least one fresh policy is needed, got seeds={seeds}.")
    training = Training() if training is None else training
    parts = split_demos(demos, seed) if parts is None else parts
    worlds = changed_dynamics(environment) if transfer else {}
    stages = _Stages(progress, 1 + 2 * seeds * (2 + len(worlds)))
    truth = true_reward(environment)
    without_entropy = dataclasses.replace(
        problem, temperature=jnp.float32(_HARD_TEMPERATURE)
    )

    def train_all(
        world: AbstractEnvironment, reward: Reward, name: str, *, hard: bool = False
    ) -> list[Fresh]:
        """As in learning; or hard: as a library that knows no entropy would."""
        return [
            train_fresh(
                world,
                reward,
                without_entropy if hard else problem,
                parts.test.trajectories,
                key=jr.fold_in(jr.key(PROTOCOL_VERSION), fresh_seed),
                starts=None if hard else parts.train.trajectories,
                training=training,
                policy_for=policy_for,
                progress=stages.next(f"{name}, fresh policy {fresh_seed + 1}"),
            )
            for fresh_seed in range(seeds)
        ]

    stages.next("clone and ranking set")(0.0, "")
    if ranking is None:
        ranking = ranking_of_demos(environment, demos)
    result = _references(environment, demos, parts, ranking, policy_for, training)
    result |= _reward_metrics(environment, reward, ranking, problem)
    learned = train_all(environment, reward.soft, "learned reward")
    true = train_all(environment, truth, "true reward")
    result |= _likelihood([fresh.nll for fresh in learned], parts)
    result["env_return"] = interval([fresh.returns for fresh in learned])
    hard = train_all(environment, reward, "learned reward, hard", hard=True)
    result["hard_return"] = interval([fresh.returns for fresh in hard])
    hard = train_all(environment, truth, "true reward, hard", hard=True)
    result["hard_true_return"] = interval([fresh.returns for fresh in hard])
    result |= _solved(environment, reward.soft, problem, parts)
    result["true_reward_nll"] = interval([fresh.nll for fresh in true])
    result["true_reward_return"] = interval([fresh.returns for fresh in true])
    result |= _retraining(learned, true, result)
    result["transfer"] = {
        name: {
            "env_return": interval(
                [
                    f.returns
                    for f in train_all(world, reward.soft, f"{name}, learned reward")
                ]
            ),
            "true_reward_return": interval(
                [f.returns for f in train_all(world, truth, f"{name}, true reward")]
            ),
        }
        for name, world in worlds.items()
    }
    result["settings"] = dataclasses.asdict(training) | {
        "protocol_version": PROTOCOL_VERSION,
        "ranking_version": ranking.version,
        "ranking_episodes": ranking.trajectories.num_episodes,
        "seeds": seeds,
        "split_seed": seed,
        "test_episodes": parts.test.num_episodes,
        "temperature": float(problem.temperature),
        "discount": float(problem.discount),
    }
    return result


def evaluate_policy(
    environment: AbstractEnvironment,
    policy: AbstractPolicy,
    demos: Demos,
    *,
    seed: int,
    parts: Parts | None = None,
    ranking: RankingSet | None = None,
    policy_for: MakePolicy = default_policy,
) -> dict[str, Any]:
    """The same for a policy that has no reward, such as a clone: nothing is trained.

    What only a reward has is `None`.
    """
    parts = split_demos(demos, seed) if parts is None else parts
    if ranking is None:
        ranking = ranking_of_demos(environment, demos)
    training, test = Training(), parts.test.trajectories
    result = _references(environment, demos, parts, ranking, policy_for, training)
    returned, nll = measure(environment, policy, test, key=jr.key(1), training=training)
    result |= _likelihood([nll], parts)
    result["env_return"] = interval(returned)
    of_rewards = (
        *_OF_SOLVED,
        "rank_corr",
        "rank_corr_per_step",
        "rank_corr_soft",
        "rank_corr_constant",
        "rank_corr_untrained",
        "epic_distance",
        "retraining_ratio",
        "hard_return",
        "hard_true_return",
    )
    settings = {
        "protocol_version": PROTOCOL_VERSION,
        "split_seed": seed,
        "test_episodes": parts.test.num_episodes,
    }
    return result | dict.fromkeys(of_rewards) | {"transfer": {}, "settings": settings}


def ranking_of_demos(environment: AbstractEnvironment, demos: Demos) -> RankingSet:
    """The ranking set of these demonstrations, the same one in every evaluation.

    A clone stands in for the expert, who may not be known. The true reward has no part
    in making it.
    """
    policy_key, clone_key, play_key = jr.split(jr.key(RANKING_VERSION), 3)
    parts = split_demos(demos, RANKING_VERSION)
    policy = default_policy(environment, policy_key)
    expert, _ = clone(
        policy, parts.train.trajectories, parts.valid.trajectories, key=clone_key
    )
    return ranking_set(environment, expert, key=play_key)


def _references(
    environment: AbstractEnvironment,
    demos: Demos,
    parts: Parts,
    ranking: RankingSet,
    policy_for: MakePolicy,
    training: Training,
) -> dict[str, Any]:
    """What does not depend on the learned reward."""
    policy_key, clone_key, cloned_key, random_key = jr.split(jr.key(0), 4)
    train, valid, test = (part.trajectories for part in parts)
    cloned, _ = clone(policy_for(environment, policy_key), train, valid, key=clone_key)
    cloned_return, cloned_nll = measure(
        environment, cloned, test, key=cloned_key, training=training
    )
    episodes = rollout(environment, ranking.random, _REFERENCE_EPISODES, key=random_key)
    return {
        "expert_return": interval(_true_returns(environment, demos.trajectories)),
        "random_return": interval(_true_returns(environment, episodes)),
        "bc_nll": interval(cloned_nll),
        "bc_return": interval(cloned_return),
    }


@eqx.filter_jit
def _true_returns(environment: AbstractEnvironment, episodes: Trajectories):
    return returns(episodes, rewards_of(environment.reward, episodes))


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


def _solved(
    environment: AbstractEnvironment,
    reward: AbstractReward,
    problem: Problem,
    parts: Parts,
) -> dict[str, Any]:
    """Likelihood and return of the policy that the reward asks for, untrained."""
    policy = solved_policy(environment, reward, problem)
    if policy is None:
        return dict.fromkeys(_OF_SOLVED)
    test = parts.test.trajectories
    returned, nll = measure(environment, policy, test, key=jr.key(PROTOCOL_VERSION))
    likelihood = _likelihood([nll], parts)
    found = likelihood["policy_nll"], likelihood["gap_percent"], interval(returned)
    return dict(zip(_OF_SOLVED, found, strict=True))


def _reward_metrics(
    environment: AbstractEnvironment,
    reward: AbstractReward,
    ranking: RankingSet,
    problem: Problem,
) -> dict[str, Any]:
    """What can be said of the reward without training on it."""
    episodes = ranking.trajectories
    found = rank_correlation(reward, episodes)
    count = episodes.num_episodes
    draws = resampled_rank_correlations(reward, episodes, jnp.asarray(picks(count)))
    constant = constant_control(episodes)
    untrained = untrained_control(reward, episodes, key=jr.key(ranking.version))
    where = coverage(episodes, environment.action_space)
    distance = epic_distance(reward, true_reward(environment), where, problem)
    return {
        "rank_corr": percentiles(float(found.total), draws, count),
        "rank_corr_per_step": _number(found.per_step),
        "rank_corr_soft": _number(rank_correlation(reward.soft, episodes).total),
        "rank_corr_constant": _number(constant.total),
        "rank_corr_constant_per_step": _number(constant.per_step),
        "rank_corr_untrained": _number(untrained.total),
        "rank_corr_untrained_per_step": _number(untrained.per_step),
        "epic_distance": _number(distance),
    }


def _retraining(
    learned: Sequence[Fresh], true: Sequence[Fresh], known: dict[str, Any]
) -> dict[str, Any]:
    """Environment steps to the threshold, on both rewards, and their ratio."""
    random, expert = (
        known[name]["mean"] for name in ("random_return", "expert_return")
    )
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


class _Stages:
    """Tells the progress of several things that are done one after the other."""

    def __init__(self, progress: Progress | None, count: int):
        self._progress, self._count, self._done = progress, count, -1

    def next(self, title: str) -> Progress:
        """A listener for the next of them."""
        self._done += 1
        done = self._done

        def listen(share: float, words: str) -> None:
            if self._progress is not None:
                text = f"{title}: {words}" if words else title
                self._progress((done + share) / self._count, text)

        return listen
