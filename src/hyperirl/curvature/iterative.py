"""Matrix-free solves: conjugate gradients, plain and preconditioned."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info, diagnose
from hyperirl.curvature.solver import AbstractSolver

_CYCLE_TOLERANCE = 1e-4  # A cycle between two true residuals gains no more than this.
_MAX_CYCLES = 8

Vector = Float[Array, " d"]


class ConjugateGradient(AbstractSolver):
    """Conjugate gradients on `X^T X + damping I`, stopped on the L2 residual.

    Products use the type of the rows, vectors are float64. The residual is computed
    afresh in float64 whenever the recursion says it is done, and the iteration goes on
    from there if the recursion was wrong or float32 has no more digits to give.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-2, kw_only=True)
    max_iterations: int = eqx.field(static=True, default=1000, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Vector, damping: Float[Array, ""]
    ) -> tuple[Vector, Info]:
        """Conjugate gradients from zero."""
        state = conjugate_gradient(
            rows,
            g,
            damping,
            precondition=lambda r: r,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        return state.v, state.diagnose("ConjugateGradient", g, damping)


class Iterate(eqx.Module):
    """Where a solve stands: the solution, its residual, and the products spent."""

    v: Vector
    r: Vector
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]

    def diagnose(
        self, name: str, g: Vector, damping: Float[Array, ""], **known
    ) -> Info:
        """The diagnostics of this iterate as an answer."""
        size = jnp.linalg.norm(g)
        relative = jnp.linalg.norm(self.r) / jnp.where(size > 0, size, 1.0)
        return diagnose(
            name,
            damping=damping,
            converged=self.converged,
            relative_residual=relative,
            iterations=self.iterations,
            certificate=residual_certificate(self.r, self.v, damping),
            **known,
        )


def residual_certificate(r: Vector, v: Vector, damping: Float[Array, ""]):
    """Bounds `|v - v_exact| / |v_exact|` by `e / (1 - e)`, `e = |r| / (damping |v|)`.

    No eigenvalue of `X^T X + damping I` is below the damping, so the error is at most
    `|r| / damping`. Infinite where that says nothing.
    """
    error, size = jnp.linalg.norm(r), damping * jnp.linalg.norm(v)
    known = error < size
    bound = error / jnp.where(known, size - error, 1.0)
    return jnp.where(known, bound, jnp.where(error == 0, 0.0, jnp.inf))


def conjugate_gradient(
    rows: AbstractRows,
    g: Vector,
    damping: Float[Array, ""],
    *,
    precondition: Callable[[Vector], Vector],
    tolerance: float,
    max_iterations: int,
    start: Iterate | None = None,
) -> Iterate:
    """Preconditioned conjugate gradients in cycles, each from a true residual."""
    low = lambda v: rows.normal_mv(v.astype(rows.dtype)).astype(jnp.float64)
    target = tolerance * jnp.linalg.norm(g)

    def cycle(state):
        iterate, cycles = state
        goal = jnp.maximum(0.9 * target, _CYCLE_TOLERANCE * jnp.linalg.norm(iterate.r))
        budget = max_iterations - iterate.iterations
        step, used = _recursion(
            lambda p: low(p) + damping * p, iterate.r, precondition, goal, budget
        )
        v = iterate.v + step
        r = g - (rows.normal_mv64(v) + damping * v)
        done = jnp.linalg.norm(r) <= target
        return Iterate(v, r, iterate.iterations + used + 1, done), cycles + 1

    def unfinished(state):
        iterate, cycles = state
        left = (iterate.iterations < max_iterations) & (cycles < _MAX_CYCLES)
        return ~iterate.converged & left & jnp.all(jnp.isfinite(iterate.r))

    if start is None:
        start = Iterate(jnp.zeros_like(g), g, jnp.asarray(0), jnp.all(g == 0))
    iterate, _ = jax.lax.while_loop(unfinished, cycle, (start, 0))
    return iterate


def _recursion(operator, b: Vector, precondition, goal, budget):
    """The textbook recursion for `operator(x) = b` until `|r| <= goal`."""

    def unfinished(state):
        _, r, _, _, steps = state
        return (jnp.linalg.norm(r) > goal) & (steps < budget)

    def step(state):
        x, r, p, rho, steps = state
        q = operator(p)
        curvature = p @ q
        length = jnp.where(curvature > 0, rho / curvature, jnp.nan)
        x, r = x + length * p, r - length * q
        z = precondition(r)
        new = r @ z
        return x, r, z + (new / rho) * p, new, steps + 1

    z = precondition(b)
    init = (jnp.zeros_like(b), b, z, b @ z, jnp.asarray(0))
    x, _, _, _, steps = jax.lax.while_loop(unfinished, step, init)
    return x, steps
