"""The numbers that matter, each beside the limits it is to be read against."""

import dataclasses
from collections.abc import Sequence
from html import escape

import numpy as np

from hyperirl.metrics import METRICS
from hyperirl.report.numbers import duration, text
from hyperirl.report.reading import Run, estimate
from hyperirl.verdict import Estimate


@dataclasses.dataclass(frozen=True)
class Headline:
    """One number, and what it is compared with."""

    key: str
    title: str
    note: str
    unit: str = ""
    limits: tuple[tuple[str, str], ...] = ()  # (name, key), worst first.
    needs_truth: bool = False  # Whether it is known only where the true reward is.


def _recorded(name: str, *limits: tuple[str, str], needs_truth: bool = False):
    """The last value of a metric of the rows, in its own words."""
    metric = METRICS[name]
    note = f"{metric.meaning[0].upper()}{metric.meaning[1:]}."
    return Headline(name, metric.title, note, "", limits, needs_truth)


HEADLINES = (
    Headline(
        "gap_percent",
        "Gap to the expert",
        "PolicyNLL of a fresh policy on the frozen reward, above the floor; 0 is the "
        "best there is.",
        unit=" %",
    ),
    Headline(
        "policy_nll",
        "PolicyNLL",
        "Nats for each held-out trajectory, under a fresh policy; the floor is what "
        "the expert itself needs.",
        limits=(("behavioral cloning", "bc_nll"), ("floor", "floor")),
    ),
    Headline(
        "clone_gap",
        "Above a clone",
        "Nats for each held-out trajectory that a fresh policy needs more than a clone "
        "of the expert, which stands in for the floor; it may be below zero.",
    ),
    Headline(
        "solved_gap_percent",
        "Gap, solved exactly",
        "The same for the policy that the reward asks for, computed, not trained.",
        unit=" %",
    ),
    Headline(
        "env_return",
        "Return of a fresh policy",
        "True return of a policy trained on the learned reward alone.",
        limits=(("random", "random_return"), ("expert", "expert_return")),
        needs_truth=True,
    ),
    Headline(
        "hard_return",
        "Return, trained the hard way",
        "The same for a policy trained as somebody else's library would: from the "
        "task's own starts, without entropy.",
        limits=(
            ("random", "random_return"),
            ("expert", "expert_return"),
            ("this way on the true reward", "hard_true_return"),
        ),
        needs_truth=True,
    ),
    Headline(
        "rank_corr",
        "RankCorr",
        "Spearman correlation of learned and true returns; read it against the "
        "controls, which know nothing.",
        limits=(
            ("constant reward", "rank_corr_constant"),
            ("untrained reward", "rank_corr_untrained"),
            ("each step", "rank_corr_per_step"),
        ),
        needs_truth=True,
    ),
    Headline(
        "epic_distance",
        "EPIC distance",
        "Between the learned and the true reward: 0 is the same up to scale, offset "
        "and shaping, 0.71 is unrelated, 1 is the opposite.",
        needs_truth=True,
    ),
    Headline(
        "retraining_ratio",
        "Retraining ratio",
        "Steps to 95 % of the expert's return, over the steps it takes on the true "
        "reward; 1 is as good as the truth.",
        unit=" ×",
        needs_truth=True,
    ),
    _recorded("best_nll_valid", ("floor", "floor_valid")),
    Headline(
        "valid_gap_percent",
        "Held-out gap while learning",
        "Of the best step, above the floor.",
        " %",
    ),
    _recorded("true_return", needs_truth=True),
    _recorded("skipped_total"),
)


def draw_headlines(run: Run) -> str:
    """A card for each number that is known, and what to do to know more."""
    cards = [_draw_card(headline, run) for headline in HEADLINES]
    steps, seconds = len(run.rows), run.last("seconds")
    if steps:
        cards.append(
            '<div class="card"><h3>Outer steps</h3>'
            f'<p class="value">{steps}</p><p class="note">in {duration(seconds)}</p>'
            "</div>"
        )
    cards = f'<div class="cards">{"".join(cards)}</div>'
    return cards + what_is_missing([run]) + _draw_transfer(run)


def _draw_card(headline: Headline, run: Run) -> str:
    value = estimate(run, headline.key)
    if not value.known:
        return ""
    limits = [(name, estimate(run, key)) for name, key in headline.limits]
    limits = [(name, limit) for name, limit in limits if limit.known]
    against = "".join(
        f"<li>{escape(name)} <b>{with_interval(limit)}</b></li>"
        for name, limit in limits
    )
    against = f"<ul>{against}</ul>" if against else ""
    digits = 3 if headline.unit else 4
    return (
        f'<div class="card"><h3>{escape(headline.title)}</h3>'
        f'<p class="value">{text(value.mean, digits)}{headline.unit}</p>'
        f"{_interval_note(value)}{_draw_gauge(value, limits)}{against}"
        f'<p class="note">{escape(headline.note)}</p></div>'
    )


def with_interval(value: Estimate) -> str:
    """As text; the interval is left out where it is not known."""
    shown = text(value.mean)
    if np.isfinite(value.low + value.high):
        shown += f' <span class="range">[{text(value.low)}, {text(value.high)}]</span>'
    return shown


def _interval_note(value: Estimate) -> str:
    if not np.isfinite(value.low + value.high):
        return ""
    count = f", n = {value.n}" if value.n else ""
    return f'<p class="range">[{text(value.low)}, {text(value.high)}]{count}</p>'


def _draw_gauge(value: Estimate, limits: list[tuple[str, Estimate]]) -> str:
    """Where the value and its interval lie among the limits."""
    if len(limits) < 2:  # Between one limit and nothing there is no place.
        return ""
    marks = [limit.mean for _, limit in limits]
    known = [v for v in (value.mean, value.low, value.high, *marks) if np.isfinite(v)]
    low, high = min(known), max(known)
    if high == low:
        return ""
    place = lambda v: 6 + 228 * (v - low) / (high - low)
    parts = ['<path class="axis" d="M6 12H234"/>']
    parts += [f'<path class="limit" d="M{place(mark):.1f} 4v16"/>' for mark in marks]
    if np.isfinite(value.low + value.high):
        ends = place(value.low), place(value.high)
        parts.append(f'<path class="spread" d="M{ends[0]:.1f} 12H{ends[1]:.1f}"/>')
    parts.append(
        f'<circle class="dots c0" cx="{place(value.mean):.1f}" cy="12" r="5"/>'
    )
    return f'<svg class="gauge" viewBox="0 0 240 24">{"".join(parts)}</svg>'


def _draw_transfer(run: Run) -> str:
    transfer = run.evaluation.get("transfer")
    if not isinstance(transfer, dict) or not transfer:
        return ""
    rows = []
    for name, values in transfer.items():
        values = values if isinstance(values, dict) else {}
        learned = Estimate.of(values.get("env_return"))
        true = Estimate.of(values.get("true_reward_return"))
        rows.append(
            f"<tr><th>{escape(str(name))}</th><td>{with_interval(learned)}</td>"
            f"<td>{with_interval(true)}</td></tr>"
        )
    return (
        "<h3>Transfer to changed dynamics</h3><p class='note'>True return of a policy "
        "trained after the change, on the learned and on the true reward.</p>"
        '<div class="wide"><table><tr><th>change</th><th>learned reward</th>'
        f"<th>true reward</th></tr>{''.join(rows)}</table></div>"
    )


def what_is_missing(runs: Sequence[Run]) -> str:
    """Says what is not shown, and why."""
    return _unevaluated(runs) + _without_floor(runs) + _without_truth(runs)


def _unevaluated(runs: Sequence[Run]) -> str:
    """Says how to fill what is empty."""
    names = [run.name for run in runs if not run.evaluation]
    if not names:
        return ""
    return (
        '<p class="note">Not evaluated with a fresh policy yet, which '
        f"<code>hyperirl evaluate RUN</code> does: {escape(', '.join(names))}.</p>"
    )


def _without_floor(runs: Sequence[Run]) -> str:
    """Says that nobody knows how likely the expert's own actions were."""
    names = [run.name for run in runs if not run.knows_floor]
    if not names:
        return ""
    whose = f" of {', '.join(names)}" if len(runs) > 1 else ""
    clones = [run for run in runs if not run.knows_floor and "bc_nll" in run.evaluation]
    instead = (
        "A clone, fitted to the training episodes, stands in for it"
        if clones
        else "<code>hyperirl evaluate RUN</code> fits a clone, to stand in for it"
    )
    return (
        f'<p class="note">The demonstrations{escape(whose)} hold no log-probabilities '
        f"of the expert, so there is no floor. {instead}.</p>"
    )


def _without_truth(runs: Sequence[Run]) -> str:
    """Says what is missing where nobody knows the true reward, and why."""
    names = [run.name for run in runs if not run.knows_truth]
    if not names:
        return ""
    missing = [headline.title for headline in HEADLINES if headline.needs_truth]
    whose = f" of {', '.join(names)}" if len(runs) > 1 else ""
    return (
        f'<p class="note">The environment{escape(whose)} has no true reward, so what '
        f"is measured against one is missing: {escape(', '.join(missing))}, Transfer."
        "</p>"
    )
