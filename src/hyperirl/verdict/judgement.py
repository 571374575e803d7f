"""What a run is worth: one sentence, and what to distrust in it.

The sentence says how close a fresh policy on the learned reward comes to the floor, and
whether a policy can be trained on that reward as anybody would. It repeats numbers of
the evaluation and adds none.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hyperirl.metrics import METRICS, Row
from hyperirl.verdict.estimate import Estimate, number

_CLOSE, _FAR = 5.0, 20.0  # Percent above the floor.
_RETRAINED, _IN_PART = 0.95, 0.7  # Of the way from random to the expert.
_SMALL = 0.5  # Of the budget that is usual for a task.
_FEW_EPISODES = 10
_FEW_STEPS = 10


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What a run is worth, in words."""

    sentence: str
    distrust: tuple[str, ...] = ()
    """Why it may be otherwise, a sentence each."""


def judgement_of(
    rows: Sequence[Row], evaluation: Mapping[str, Any], *, cloned: bool = False
) -> Judgement:
    """Judges a run by its evaluation or, before there is one, by its rows.

    Args:
        rows: Its metrics, a row for each outer step.
        evaluation: What `evaluation.json` holds; may be empty.
        cloned: Whether it learned a policy and no reward.
    """
    if not evaluation:
        return Judgement(_unevaluated(rows, cloned), tuple(_unfinished(rows, cloned)))
    known = _Known(evaluation)
    parts = [_closeness(known, cloned), "" if cloned else _retraining(known)]
    sentence = "".join(part for part in parts if part)
    distrust = [
        *_unfinished(rows, cloned),
        *_budget(known),
        *_luck(known, cloned),
        *_training(known),
        *_ranking(known),
    ]
    return Judgement(f"{sentence}." if sentence else "", tuple(distrust))


@dataclasses.dataclass(frozen=True)
class _Known:
    """Numbers of an evaluation, by name."""

    evaluation: Mapping[str, Any]

    def __getitem__(self, name: str) -> Estimate:
        return Estimate.of(self.evaluation.get(name))

    def setting(self, name: str) -> float:
        settings = self.evaluation.get("settings")
        return number(settings.get(name)) if isinstance(settings, Mapping) else math.nan

    def share(self, name: str) -> float:
        """How far a return is on the way from random to the expert."""
        random, expert = self["random_return"].mean, self["expert_return"].mean
        if not expert > random:
            return math.nan
        return (self[name].mean - random) / (expert - random)


def _closeness(known: _Known, cloned: bool) -> str:
    who = (
        "The cloned policy" if cloned else "A fresh policy trained on this reward alone"
    )
    nll, floor, clone = known["policy_nll"], known["floor"], known["bc_nll"]
    if not nll.known:
        return ""
    if not floor.known:
        what = f"{who} explains held-out demonstrations at {_text(nll.mean)} nats each"
        if clone.known and not cloned:
            what += f", a clone of the expert at {_text(clone.mean)}"
        return f"{what}; the expert's own figure, the floor, is not known"
    gap = known["gap_percent"]
    if not gap.known:
        above = f"{_text(nll.mean - floor.mean)} nats above the floor"
        return f"{who} explains held-out demonstrations {above}, which is almost 0"
    above = f"{_text(gap.mean)} % above the floor"
    if gap.low <= 0:
        how = "as well as the expert itself, as far as one can tell"
    elif gap.mean <= _CLOSE:
        how = "almost as well as the expert itself"
    elif nll.mean <= known["true_reward_nll"].mean:
        how = "as well as one trained on the true reward does"
    else:
        how = (
            "worse than the expert" if gap.mean <= _FAR else "far worse than the expert"
        )
    return f"{who} explains held-out demonstrations {how} ({above})"


def _retraining(known: _Known) -> str:
    """Whether the reward is enough for a library that knows nothing of ours."""
    if known.evaluation.get("true_reward") is False:
        return "; whether it retrains is not known, for there is no true reward"
    share, truth = known.share("hard_return"), known.share("hard_true_return")
    if not math.isfinite(share):
        share, truth = known.share("env_return"), known.share("true_reward_return")
    if not math.isfinite(share):
        return ""
    beside = f"; the true reward: {_percent(truth)}" if math.isfinite(truth) else ""
    way = f"({_percent(share)} of the way from random actions to the expert{beside})"
    if share >= _RETRAINED:
        return f", and the reward retrains {way}"
    if math.isfinite(truth) and truth < _RETRAINED and share >= 0.9 * truth:
        return f", and training on it gets as far as on the true reward {way}"
    if share >= _IN_PART:
        return f", and the reward retrains in part {way}"
    return f"; the reward does not retrain {way}"


def _unevaluated(rows: Sequence[Row], cloned: bool) -> str:
    """What is known from learning alone."""
    nll = METRICS["nll_valid"].column(rows)
    nll = nll[np.isfinite(nll)]
    if not len(nll):
        return "Nothing has been measured yet."
    floor = METRICS["floor_valid"].column(rows)[-1]
    best, first = float(nll.min()), float(nll[0])
    what = f"the held-out NLL is {_text(best)} nats a trajectory"
    if abs(floor) > 1e-6:
        what += f", {_text(100 * (best - floor) / abs(floor))} % above the expert's own"
    if cloned:
        return f"For the cloned policy, {what}."
    if len(nll) > 1:
        what += f" (in the first step it was {_text(first)})"
    return (
        f"So far, {what}; what the reward is worth to a fresh policy was not measured."
    )


def _unfinished(rows: Sequence[Row], cloned: bool) -> list[str]:
    done = METRICS["done"].column(rows)
    found = []
    if len(done) and done[-1] < 1 - 1e-6:
        found.append(f"The run is not finished: {_percent(done[-1])} is done.")
    elif 0 < len(rows) < _FEW_STEPS and not cloned:
        steps = f"{len(rows)} outer step{'' if len(rows) == 1 else 's'}"
        found.append(f"The reward was learned in {steps}, which are few.")
    return found


def _budget(known: _Known) -> list[str]:
    budget, usual = known.setting("budget"), known.setting("usual_budget")
    if not budget < _SMALL * usual:
        return []
    return [
        f"Fresh policies were trained for {budget:,.0f} environment steps, "
        f"{_percent(budget / usual)} of the {usual:,.0f} that are usual here: what "
        "they fail at may be the budget's fault, and not the reward's."
    ]


def _luck(known: _Known, cloned: bool) -> list[str]:
    found = []
    if known.setting("seeds") == 1 and not cloned:
        found.append("A single fresh policy was trained: its luck is in every number.")
    episodes = known.setting("test_episodes")
    if episodes < _FEW_EPISODES:
        found.append(f"Likelihoods are means of {episodes:.0f} held-out episodes.")
    return found


def _training(known: _Known) -> list[str]:
    """What the same training leaves even of a perfect reward."""
    floor, true = known["floor"].mean, known["true_reward_nll"].mean
    if not (abs(floor) > 1e-6 and math.isfinite(true)):
        return []
    above = 100 * (true - floor) / abs(floor)
    if not above > _CLOSE:
        return []
    return [
        f"The same training on the true reward ends {_text(above)} % above the floor: "
        "so much of the gap need not be the reward's."
    ]


def _ranking(known: _Known) -> list[str]:
    found = known["rank_corr"].mean
    controls = known["rank_corr_constant"].mean, known["rank_corr_untrained"].mean
    best = np.nanmax([-1.0, *controls])
    if not best > found - 0.02:
        return []
    return ["RankCorr says nothing here: a reward that knows nothing scores as much."]


def _text(value: float) -> str:
    return f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
