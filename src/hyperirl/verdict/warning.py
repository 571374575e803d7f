"""What a finished run should say of itself: warnings in plain sentences, from its rows.

They are rare on purpose. Near the optimum a run is noisy, and a good one may end a
little above its best step; neither is worth a word.
"""

import math
from collections.abc import Sequence

import numpy as np

from hyperirl.metrics import METRICS, Row

_TAIL = 5  # At most so many last steps are the end of a run.
_FEW = 5  # With fewer steps than this a run cannot have gained nothing.
_UNREASONABLE = 10  # Times the first NLL.
_MANY = 0.1  # The share of skipped steps that is too many.
_FAR = 0.1  # Nats a step from the inner optimum; ten times what learning aims at.
_LOW_SNR = 1.0


def warnings_of(
    rows: Sequence[Row],
    *,
    temperature: float | None = None,
    discount: float | None = None,
) -> list[str]:
    """What went wrong in a run, a sentence or two each; nothing for a good run.

    Args:
        rows: Its metrics, a row for each outer step.
        temperature: Of its problem; the inner gap is judged only if both are known.
        discount: Of its problem.
    """
    if not rows:
        return []
    found = [
        _not_finite(rows),
        _skipped(rows),
        _likelihood(rows),
        _inner(rows, temperature, discount),
        _noise(rows),
        _scale(rows),
    ]
    return [warning for warning in found if warning]


def _not_finite(rows: Sequence[Row]) -> str:
    """Steps that went on with an NLL that is no number; skipped ones did not."""
    skipped = METRICS["skipped"].column(rows) == 1
    bad = int(np.sum(~np.isfinite(METRICS["nll_valid"].column(rows)) & ~skipped))
    if not bad:
        return ""
    return (
        f"The held-out NLL was not finite in {bad} of {_steps(len(rows))}. "
        "Lower the learning rate."
    )


def _skipped(rows: Sequence[Row]) -> str:
    skipped = METRICS["skipped"].column(rows) == 1
    if not (skipped[-1] or np.mean(skipped) > _MANY):
        return ""
    return (
        f"{int(skipped.sum())} of {_steps(len(rows))} did nothing, because a number in "
        "them was not finite. Lower the learning rate, or raise the damping."
    )


def _likelihood(rows: Sequence[Row]) -> str:
    """Held-out NLL that exploded, that ended worse, or that never got better."""
    nll = METRICS["nll_valid"].column(rows)
    nll = nll[np.isfinite(nll)]
    if len(nll) < 2:
        return ""
    first, last = float(nll[0]), _at_the_end(nll)
    kept = (
        f"The best was {_text(nll.min())}; what was kept comes from there. "
        "Lower the learning rate."
    )
    # An NLL of densities may be negative, so that a multiple of it says nothing.
    reason = first + _UNREASONABLE * max(abs(first), 1.0)
    if last > reason or np.mean(nll > reason) > 0.25:
        return (
            f"The held-out NLL left all reason: it was {_text(first)} in the first "
            f"step, up to {_text(nll.max())} later, and {_text(last)} at the end. "
            f"{kept}"
        )
    if last > first + max(3 * _jitter(nll), 0.01 * abs(first)):
        return (
            f"The run ended worse than it began: the held-out NLL was {_text(first)} "
            f"in the first step and {_text(last)} at the end. {kept}"
        )
    if len(nll) >= _FEW and nll[1:].min() >= first:
        return (
            f"Nothing was learned: the held-out NLL was {_text(first)} in the first "
            "step and never lower. Change the learning rate, or the method."
        )
    return ""


def _inner(
    rows: Sequence[Row], temperature: float | None, discount: float | None
) -> str:
    """Far from the inner optimum, the estimate is not the gradient of the loss."""
    if temperature is None or discount is None or not discount < 1:
        return ""
    gap, error = (METRICS[n].column(rows) for n in ("inner_gap", "inner_gap_error"))
    # What a nat a step is worth, in an episode that never ends; less in one that does.
    nat = temperature / (1 - discount)
    far = gap - 2 * np.nan_to_num(error) > _FAR * nat
    if not np.mean(far) > 0.5:
        return ""
    return (
        f"The policy was far from the best one for the reward in {int(far.sum())} of "
        f"{_steps(len(rows))}, so that the hypergradient was not one. Raise the number "
        "of inner updates."
    )


def _noise(rows: Sequence[Row]) -> str:
    """Little signal is normal at the end of learning, and a fault before it."""
    snr = METRICS["snr"].column(rows)
    early, late = snr[: -(-len(snr) // 4)], snr[len(snr) // 2 :]
    low = int(np.sum(late < _LOW_SNR))
    if len(snr) < _FEW or not low > len(late) / 2:
        return ""
    nll, gap = (METRICS[name].column(rows) for name in ("nll_valid", "gap"))
    if np.isfinite(gap[0]):
        learned = np.nanmin(nll) < nll[0] - gap[0] / 2
    else:
        learned = not np.mean(early < _LOW_SNR) > 0.5
    if learned:
        return ""
    return (
        f"The hypergradient was mostly noise in {low} of the last {_steps(len(late))}, "
        "before much was learned. Raise the number of agent trajectories."
    )


def _scale(rows: Sequence[Row]) -> str:
    """An expert that hardly varies: the limit stands in for what it would do."""
    met = METRICS["at_min_scale"].column(rows)
    if not _at_the_end(met) > 0:
        return ""
    limit = _text(METRICS["min_scale"].column(rows)[-1])
    return (
        f"The policy's scale is at its lower limit of {limit} for "
        f"{100 * _at_the_end(met):.0f} % of the held-out actions, so that this limit "
        "decides the NLL and the scale of the reward."
    )


def _at_the_end(values: np.ndarray) -> float:
    """The median of the last few, which one odd step does not move."""
    count = max(1, min(_TAIL, len(values) // 3))
    return float(np.median(values[-count:]))


def _jitter(values: np.ndarray) -> float:
    """The standard deviation of a step's luck: from neighbors, so trends add little."""
    return 1.4826 * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2)


def _steps(count: int) -> str:
    return f"{count} outer step{'' if count == 1 else 's'}"


def _text(value: float) -> str:
    return f"{value:.4g}"
