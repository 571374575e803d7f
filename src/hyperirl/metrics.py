"""The numbers that a run writes down: what each is called, and what it means.

A row of `metrics.jsonl` is what a step measured and what the loop around it knows; what
does not exist in a run is not in its rows. Whoever shows a number takes its words here.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

Row = Mapping[str, Any]
_REASON = 1e100  # Sums and squares of what is below it are finite.


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number of a row."""

    name: str
    title: str
    unit: str
    meaning: str
    better: Literal["lower", "higher"] | None = None
    log: bool = False  # Whether it spans orders of magnitude.

    def column(self, rows: Sequence[Row]) -> np.ndarray:
        """Its value in each row; NaN where it was not recorded, or is beyond reason."""
        values = [row.get(self.name) for row in rows]
        known = [v if isinstance(v, int | float) else math.nan for v in values]
        column = np.array(known, float)
        return np.where(np.abs(column) < _REASON, column, np.nan)


class Gap(Metric):
    """How far the held-out NLL is above the expert's own."""

    def column(self, rows: Sequence[Row]) -> np.ndarray:
        nll, floor = METRICS["nll_valid"], METRICS["floor_valid"]
        return nll.column(rows) - floor.column(rows)


class SkippedSoFar(Metric):
    """How many steps were skipped up to this one."""

    def column(self, rows: Sequence[Row]) -> np.ndarray:
        skipped = METRICS["skipped"].column(rows)
        return np.where(np.isnan(skipped), np.nan, np.nancumsum(skipped))


def metric(
    title: str,
    unit: str,
    meaning: str,
    better: Literal["lower", "higher"] | None = None,
    *,
    log: bool = False,
    optional: bool = False,
) -> Any:
    """A field that is a metric; an optional one is None in runs that have none."""
    words = dict(title=title, unit=unit, meaning=meaning, better=better, log=log)
    metadata = {"metric": words}
    if optional:
        return dataclasses.field(default=None, metadata=metadata)
    return dataclasses.field(metadata=metadata)


class Measured(eqx.Module):
    """What every way of learning measures."""

    step: Int[Array, ""] = metric("Outer step", "steps", "counted from 1")
    nll_valid: Float[Array, ""] = metric(
        "Held-out NLL",
        "nats for each trajectory",
        "of expert trajectories the reward was not fitted to",
        "lower",
    )
    best_nll_valid: Float[Array, ""] = metric(
        "Best held-out NLL",
        "nats for each trajectory",
        "the lowest so far; it selects the policy",
        "lower",
    )


class CloneMetrics(Measured):
    """What behavioral cloning measures, once."""

    nll_train: Float[Array, ""] = metric(
        "Training NLL",
        "nats for each trajectory",
        "of the expert trajectories that were cloned",
        "lower",
    )


class StepMetrics(Measured):
    """What a compiled outer step measures."""

    outer_loss: Float[Array, ""] = metric(
        "Outer loss",
        "nats for each trajectory",
        "discounted, on the trajectories the reward is fitted to",
        "lower",
    )
    inner_gap: Float[Array, ""] = metric(
        "Inner gap",
        "soft return",
        "how far the policy is from the best one on the current reward",
        "lower",
        log=True,
    )
    inner_gap_error: Float[Array, ""] = metric(
        "Error of the inner gap", "soft return", "its standard error", "lower", log=True
    )
    inner_gradient_norm: Float[Array, ""] = metric(
        "Inner gradient",
        "norm",
        "of the inner loss where the inner solver stopped",
        "lower",
        log=True,
    )
    entropy: Float[Array, ""] = metric(
        "Entropy of the policy", "nats for each step", "how much it leaves to chance"
    )
    policy_kl: Float[Array, ""] = metric(
        "Policy change", "KL, nats", "in one outer step", log=True
    )
    inner_updates: Int[Array, ""] = metric(
        "Inner updates", "updates", "of the policy, in one outer step"
    )
    agent_episodes: Int[Array, ""] = metric(
        "Agent trajectories", "trajectories", "for one hypergradient"
    )
    snr: Float[Array, ""] = metric(
        "Signal to noise",
        "ratio",
        "of the hypergradient, from two halves of the trajectories",
        "higher",
        log=True,
    )
    h_norm: Float[Array, ""] = metric(
        "Norm of the hypergradient", "norm", "before clipping", log=True
    )
    ml_irl_cosine: Float[Array, ""] = metric(
        "Cosine with ML-IRL",
        "cosine",
        "of the hypergradient and the ML-IRL gradient; both are mostly noise near the "
        "optimum, where either sign is normal",
    )
    learning_rate: Float[Array, ""] = metric(
        "Learning rate",
        "step size",
        "of the reward; NaN if its optimizer was given ready made",
        log=True,
    )
    skipped: Int[Array, ""] = metric(
        "Skipped", "steps", "1 if the step was not finite and changed nothing", "lower"
    )
    radius: Float[Array, ""] | None = metric(
        "Trust region",
        "discounted nats",
        "how far a natural step may go",
        log=True,
        optional=True,
    )
    soft_bellman_cosine: Float[Array, ""] | None = metric(
        "Cosine with soft Bellman",
        "cosine",
        "of the hypergradient and the one without a Fisher matrix; low where the "
        "policy cannot follow the reward, or where both are mostly noise",
        optional=True,
    )
    challenger_gain: Float[Array, ""] | None = metric(
        "Gain of the challenger",
        "soft return",
        "above that of the policy in the loop; positive is a better way to earn the "
        "learned reward",
        "lower",
        optional=True,
    )
    challenger_won: Int[Array, ""] | None = metric(
        "Challenger won",
        "steps",
        "1 if it is better beyond noise, and the reward learned from it",
        "lower",
        optional=True,
    )
    min_scale: Float[Array, ""] | None = metric(
        "Least scale",
        "units of the action",
        "the policy's scale cannot be lower, which limits the NLL",
        optional=True,
    )
    at_min_scale: Float[Array, ""] | None = metric(
        "At the least scale",
        "share",
        "of the held-out actions for which the policy's scale is at its lower limit",
        "lower",
        optional=True,
    )
    damping: Float[Array, ""] | None = metric(
        "Damping", "λ", "of the inverse Fisher", log=True, optional=True
    )
    residual: Float[Array, ""] | None = metric(
        "Solve residual",
        "relative",
        "of the curvature solve",
        "lower",
        log=True,
        optional=True,
    )
    solver_iterations: Int[Array, ""] | None = metric(
        "Solver iterations", "iterations", "of each solve", "lower", optional=True
    )
    effective_dimension: Float[Array, ""] | None = metric(
        "Effective dimension",
        "directions",
        "of the Fisher that stand out from the damping",
        optional=True,
    )
    certificate: Float[Array, ""] | None = metric(
        "Certificate of the solve",
        "relative error",
        "bound on the error of the curvature solve",
        "lower",
        log=True,
        optional=True,
    )
    true_return: Float[Array, ""] | None = metric(
        "True return",
        "return",
        "of the policy; never used to learn",
        "higher",
        optional=True,
    )
    rank_corr: Float[Array, ""] | None = metric(
        "Rank correlation",
        "Spearman correlation",
        "of learned and true returns; never used to learn",
        "higher",
        optional=True,
    )


@dataclasses.dataclass(frozen=True)
class LoopMetrics:
    """What the loop around a step knows."""

    step_seconds: float = metric(
        "Time for each outer step",
        "seconds",
        "the first ones include compilation",
        "lower",
        log=True,
    )
    seconds: float = metric("Time", "seconds", "since the run began", "lower")
    learned_seconds: float = metric(
        "Time without compilation", "seconds", "since the run began", "lower"
    )
    done: float = metric("Done", "share", "of the run's steps or of its time")
    floor_valid: float | None = metric(
        "Expert's floor",
        "nats for each trajectory",
        "held-out NLL of the expert itself",
        optional=True,
    )


def as_row(
    measured: StepMetrics | CloneMetrics, loop: LoopMetrics
) -> dict[str, int | float]:
    """The row of one step, as plain numbers; what does not exist is left out."""
    parts: Sequence[Any] = jax.device_get(measured), loop
    values = [
        (field.name, getattr(part, field.name))
        for part in parts
        for field in dataclasses.fields(part)
    ]
    return {name: np.asarray(x).item() for name, x in values if x is not None}


def _metrics_of(kind: type) -> list[Metric]:
    fields: Sequence[Any] = dataclasses.fields(kind)
    return [Metric(field.name, **field.metadata["metric"]) for field in fields]


_ALL = [
    *_metrics_of(StepMetrics),
    *_metrics_of(LoopMetrics),
    *_metrics_of(CloneMetrics),
    Gap(
        "gap",
        "Gap to the floor",
        "nats for each trajectory",
        "held-out NLL above the expert's own",
        "lower",
        log=True,
    ),
    SkippedSoFar(
        "skipped_total", "Skipped steps", "steps", "not finite, so far", "lower"
    ),
]
METRICS: Mapping[str, Metric] = {m.name: m for m in _ALL}
"""Every number of a row, and what follows from them, by name."""
