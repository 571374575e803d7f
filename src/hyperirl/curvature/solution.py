"""What a solver returns: the vector and how far it can be believed."""

import math
import warnings

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

SOLVERS = (
    "Explicit",
    "Woodbury",
    "SCFD",
    "PaperSCFD",
    "FrequentDirections",
    "RobustFrequentDirections",
    "ConjugateGradient",
    "SketchPCG",
    "Neumann",
    "KFAC",
    "RankOne",
    "Diagonal",
    "Identity",
)

_warned: set[tuple[str, str]] = set()


class Info(eqx.Module):
    """Diagnostics of one solve; NaN or -1 where the solver does not know."""

    relative_residual: Float[Array, "..."]
    """`|g - (X^T X + damping I) v| / |g|`, before v is rounded to the type of g."""
    iterations: Int[Array, "..."]
    """Products with `X^T X` in iterative solvers; refinement steps in direct ones."""
    certificate: Float[Array, "..."]
    """An upper bound on `|v - v_exact| / |v_exact|`; infinite if there is none."""
    damping: Float[Array, "..."]
    """The damping used, after `Relative` was resolved."""
    effective_dimension: Float[Array, "..."]
    """Estimate of `tr(X^T X (X^T X + damping I)^-1)`; from a sketch, a lower bound."""
    rows_seen: Int[Array, "..."]
    """How many rows there were."""
    rows_refused: Int[Array, "..."]
    """How many of them were not finite, or too large to square, and were left out."""
    converged: Bool[Array, "..."]
    """Whether the solver reached its tolerance. Approximations without one are True if
    the answer is finite."""
    picked: Int[Array, "..."]
    """The solver that gave the answer, as an index into `SOLVERS`; see `name`."""
    solver: str = eqx.field(static=True)
    """The solver that was called."""

    @property
    def name(self) -> str:
        """The solver that gave the answer; for `Auto`, the one it picked."""
        return SOLVERS[int(jnp.ravel(self.picked)[0])]


class Solution(eqx.Module):
    """`v`, in the type of `g`, and the diagnostics of the solve."""

    v: Float[Array, "*batch d"]
    info: Info

    def check(self, *, threshold: float = 0.5) -> "Solution":
        """Warns, once a solver and reason, about an answer that cannot be trusted.

        For use outside `jit`; values that are still being traced are left alone.

        Args:
            threshold: Largest certificate of a sketch to accept in silence.
        """
        if isinstance(self.info.converged, Tracer):
            return self
        info = self.info
        if not bool(jnp.all(info.converged)):
            _warn(
                info.name,
                "did not converge",
                f"its relative residual is {_worst(info.relative_residual):.1e} after "
                f"{_worst(info.iterations):.0f} iterations. Raise `damping` or the "
                "iteration limit, or use `Auto`.",
            )
        elif _worst(info.certificate) > threshold and info.name in _SKETCHES:
            _warn(
                info.name,
                "may be far from the exact solution",
                f"its error is only certified to be below "
                f"{_worst(info.certificate):.0%}. The sketch is smaller than the "
                "effective dimension and acts as extra damping: raise `size` or "
                "`damping`, or use `Auto`.",
            )
        if _worst(info.rows_refused) > 0:
            _warn(
                info.name,
                "refused rows",
                f"{_worst(info.rows_refused):.0f} of {_worst(info.rows_seen):.0f} rows "
                "were not finite or too large to square, and were left out.",
            )
        return self


_SKETCHES = ("SCFD", "PaperSCFD", "FrequentDirections", "RobustFrequentDirections")


def diagnose(
    name: str,
    *,
    damping: Float[Array, ""],
    converged: Bool[Array, ""],
    relative_residual: Float[Array, ""] | float = math.nan,
    iterations: Int[Array, ""] | int = -1,
    certificate: Float[Array, ""] | float = math.nan,
    effective_dimension: Float[Array, ""] | float = math.nan,
    rows_seen: Int[Array, ""] | int = -1,
    rows_refused: Int[Array, ""] | int = -1,
) -> Info:
    """Diagnostics with everything that is not given marked as not known."""
    real = lambda x: jnp.asarray(x, jnp.float64)
    count = lambda x: jnp.asarray(x, jnp.int32)
    return Info(
        relative_residual=real(relative_residual),
        iterations=count(iterations),
        certificate=real(certificate),
        damping=real(damping),
        effective_dimension=real(effective_dimension),
        rows_seen=count(rows_seen),
        rows_refused=count(rows_refused),
        converged=converged,
        picked=count(SOLVERS.index(name)),
        solver=name,
    )


def _worst(values: Array) -> float:
    return float(jnp.max(values))


def _warn(name: str, reason: str, details: str) -> None:
    if (name, reason) not in _warned:
        _warned.add((name, reason))
        warnings.warn(f"{name} {reason}: {details}", RuntimeWarning, stacklevel=3)
