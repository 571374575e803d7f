"""What is odd about demonstrations: said when they are loaded, before it misleads."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from hyperirl.demos.checks import check_against
from hyperirl.demos.demos import Demos
from hyperirl.demos.determinism import evidence_of_determinism
from hyperirl.demos.following import share_astray
from hyperirl.demos.loading import environment_of
from hyperirl.demos.splitting import splits_by_time
from hyperirl.environments import AbstractWorld
from hyperirl.spaces import Box
from hyperirl.trajectories import Trajectories, steps_taken


@dataclasses.dataclass(frozen=True)
class Oddity:
    """Something that is not wrong, and matters. As text it is one sentence."""

    name: str
    """For programs: always the same for the same oddity."""
    what: str
    why: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}, so {self.why}; {self.advice}."


def oddities(
    demos: Demos, environment: AbstractWorld | None = None
) -> tuple[Oddity, ...]:
    """All that is odd, the gravest first.

    Args:
        demos: What was loaded.
        environment: Where they are said to come from; by default the one of ours that
            they name. Without any, less can be found.
    """
    if environment is None:
        environment = environment_of(demos.provenance)
    if environment is not None:
        check_against(demos, environment)
    found = [find(demos, environment) for find in _FINDERS]
    return tuple(oddity for oddity in found if oddity is not None)


def _steps_left_out(demos: Demos, environment) -> Oddity | None:
    why = "what an action led to is not known"
    advice = "give every step of an episode, one after the other"
    if "steps" in demos.provenance.missing:
        what = "Steps were left out of the episodes"
        return Oddity("steps-left-out", what, why, advice)
    share = None if environment is None else share_astray(demos, environment)
    if share is None or share < 0.05:
        return None
    name = type(environment).__name__
    what = f"{share:.0%} of the steps do not lead where {name} leads"
    why = "steps were left out, or they come from another environment"
    return Oddity("steps-left-out", what, why, f"{advice}, from this environment")


def _other_rewards(demos: Demos, environment) -> Oddity | None:
    batch = demos.trajectories
    if environment is None or batch.rewards is None or not environment.has_reward:
        return None
    if environment.is_stepped:  # The true reward is no function.
        return None
    mask = np.asarray(batch.mask)
    true = np.asarray(_true_rewards(environment, batch), np.float64)[mask]
    given = np.asarray(batch.rewards, np.float64)[mask]
    apart = np.abs(true - given)
    share = np.mean(apart > 1e-4 * max(1.0, float(np.max(np.abs(true)))))
    if not share:
        return None
    return Oddity(
        "other-rewards",
        f"{share:.1%} of the recorded rewards differ from those of "
        f"{type(environment).__name__}, by up to {np.max(apart):.3g}",
        "returns of the demonstrations and of learned policies cannot be compared",
        "give the environment the demonstrations come from, or leave rewards out",
    )


@eqx.filter_jit
def _true_rewards(
    environment: Any, batch: Trajectories
) -> Float[Array, "episodes steps"]:
    return jax.vmap(jax.vmap(environment.reward))(*steps_taken(batch))


def _deterministic(demos: Demos, environment) -> Oddity | None:
    evidence = evidence_of_determinism(demos)
    if evidence is None:
        return None
    return Oddity(
        "deterministic",
        f"The expert acts almost without chance: {evidence}",
        "the reward's scale cannot be learned, only which actions are better",
        "record actions of a policy that samples them; otherwise learn few steps "
        "(`--steps 15`), and compare rewards up to a factor only",
    )


def _at_the_bounds(demos: Demos, environment) -> Oddity | None:
    batch = demos.trajectories
    if batch.discrete:
        return None
    actions = np.asarray(batch.actions, np.float64)[np.asarray(batch.mask)]
    low, high = actions.min(axis=0), actions.max(axis=0)
    space = None if environment is None else environment.action_space
    if isinstance(space, Box) and np.isfinite(space.high - space.low):
        low, high = np.full_like(low, space.low), np.full_like(high, space.high)
    slack = 1e-5 * (high - low)
    at = np.any((actions <= low + slack) | (actions >= high - slack), axis=1)
    # One step has the least of all actions; many do if they were clipped there.
    share = float(np.mean(at))
    if share < 0.01 or np.sum(at) < 10 or np.all(high == low):
        return None
    return Oddity(
        "actions-at-the-bounds",
        f"{share:.0%} of the actions are at the bounds, as if clipped there",
        "their likelihood under a smooth policy says little",
        "judge what is learned by its return, or record an expert that stays inside",
    )


def _constant_observations(demos: Demos, environment) -> Oddity | None:
    batch = demos.trajectories
    rows = np.asarray(batch.observations)[:, :-1][np.asarray(batch.mask)]
    same = np.flatnonzero(np.all(rows == rows[:1], axis=0))
    if not same.size or len(rows) < 2:
        return None
    listed = ", ".join(str(i) for i in same[:8]) + (", ..." if same.size > 8 else "")
    return Oddity(
        "constant-observations",
        f"{same.size} of {rows.shape[1]} observations never change (number {listed})",
        "nothing can be learned about them",
        "leave them out, or show the expert where they differ",
    )


def _duplicates(demos: Demos, environment) -> Oddity | None:
    batch = demos.trajectories
    lengths = np.asarray(batch.lengths)
    seen, acted = np.asarray(batch.observations), np.asarray(batch.actions)
    episodes = {
        seen[i, : n + 1].tobytes() + acted[i, :n].tobytes()
        for i, n in enumerate(lengths)
    }
    again = len(lengths) - len(episodes)
    if not again:
        return None
    return Oddity(
        "duplicated-episodes",
        f"{again} of {len(lengths)} episodes are copies of others",
        "some that are held out to judge by were learned from",
        "leave the copies out",
    )


def _few_episodes(demos: Demos, environment) -> Oddity | None:
    number = demos.num_episodes
    if splits_by_time(demos):
        return Oddity(
            "too-few-episodes",
            "There is only 1 episode" if number == 1 else "There are only 2 episodes",
            "segments of them are held out to judge by, beside others that are learned "
            "from",
            "give more episodes, or do not trust held-out numbers too much",
        )
    if number < 10:
        return Oddity(
            "few-episodes",
            f"There are only {number} episodes",
            "one or two of them are held out to select and to judge by, which tell "
            "little",
            "give more episodes",
        )
    return None


def _last_observations(demos: Demos, environment) -> Oddity | None:
    if "last observations" not in demos.provenance.missing and not _repeats_last(demos):
        return None
    return Oddity(
        "missing-last-observations",
        "What was seen after the last action was not recorded",
        "the observation before it is repeated, and the last step leads nowhere",
        "record one more observation than actions",
    )


def _repeats_last(demos: Demos) -> bool:
    """Whether all episodes repeat their last observation, and none any other."""
    batch = demos.trajectories
    mask, lengths = np.asarray(batch.mask), np.asarray(batch.lengths)
    seen = np.asarray(batch.observations)
    same = np.all(seen[:, 1:] == seen[:, :-1], axis=2) & mask
    last = np.arange(mask.shape[1])[None, :] == lengths[:, None] - 1
    return bool(np.all(same == last))


def _terminations(demos: Demos, environment) -> Oddity | None:
    batch = demos.trajectories
    ended, number = int(np.sum(np.asarray(batch.terminated))), demos.num_episodes
    why = "ends of the task may be taken for time limits, or the other way round"
    advice = "record which episodes terminated and which were cut off"
    if "terminations" in demos.provenance.missing:
        what = "Whether episodes terminated or were cut off was not recorded "
        what += f"({ended} of {number} count as terminated)"
        return Oddity("absent-terminations", what, why, advice)
    if not ended and len(np.unique(np.asarray(batch.lengths))) > 1:
        what = "No episode terminated, and still they differ in length"
        return Oddity("absent-terminations", what, why, advice)
    return None


def _no_log_probs(demos: Demos, environment) -> Oddity | None:
    if demos.expert_log_probs is not None:
        return None
    return Oddity(
        "no-log-probabilities",
        "The expert's log-probabilities were not recorded",
        "it is not known how likely its actions can be at best",
        "take the likelihood of a cloned policy as an estimate, or record them",
    )


_Finder = Callable[[Demos, AbstractWorld | None], Oddity | None]
_FINDERS: tuple[_Finder, ...] = (
    _steps_left_out,
    _other_rewards,
    _deterministic,
    _at_the_bounds,
    _duplicates,
    _few_episodes,
    _constant_observations,
    _terminations,
    _last_observations,
    _no_log_probs,
)
