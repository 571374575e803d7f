"""Crude inverses: one direction, the diagonal, or nothing but the scale."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from hyperirl.curvature.damping import AbstractDamping, as_damping
from hyperirl.curvature.iterative import residual_certificate
from hyperirl.curvature.rows import AbstractRows
from hyperirl.curvature.solution import Info, diagnose
from hyperirl.curvature.solver import AbstractSolver


class RankOne(AbstractSolver):
    """`X^T X` replaced by its largest direction, `s u u^T`, found by power iteration.

    `v = (g - u (u . g) s / (s + damping)) / damping`.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    num_steps: int = eqx.field(static=True, default=20, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Power iteration, then the Sherman-Morrison formula."""
        s, u = power_iteration(rows, self.num_steps)
        v = (g - u * ((u @ g) * s / (s + damping))) / damping
        return v, _finite("RankOne", v, damping, self.num_steps)


class Diagonal(AbstractSolver):
    """`X^T X` replaced by its diagonal: `v_i = g_i / (sum_t x_ti^2 + damping)`."""

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """One pass over the rows."""
        v = g / (rows.column_squares().astype(jnp.float64) + damping)
        return v, _finite("Diagonal", v, damping, 0)


class Identity(AbstractSolver):
    """`X^T X` replaced by the identity of the same trace.

    `v = g / (tr(X^T X) / dim + damping)`.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """One division."""
        v = g / (rows.squared_norm() / max(rows.dim, 1) + damping)
        return v, _finite("Identity", v, damping, 0)


class Neumann(AbstractSolver):
    """A truncated Neumann series: `v = eta sum_k (I - eta A)^k g`.

    The step `eta` is one over an upper bound on the largest eigenvalue of
    `A = X^T X + damping I`: its trace, or 1.5 times a power-iteration estimate, which
    would have to be wrong threefold for the series to diverge. Needs about
    `log(1 / tolerance) / (eta damping)` terms: for comparison, never the best choice.
    """

    damping: AbstractDamping = eqx.field(converter=as_damping, kw_only=True)
    num_terms: int = eqx.field(static=True, default=400, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-2, kw_only=True)

    def solve(
        self, rows: AbstractRows, g: Float[Array, " d"], damping: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Info]:
        """Adds terms until the residual `g - A v` is small; it is the next term."""
        estimate, _ = power_iteration(rows, 20)
        step = 1 / (jnp.minimum(1.5 * estimate, rows.squared_norm()) + damping)
        operator = lambda p: _product(rows, p) + damping * p
        target = self.tolerance * jnp.linalg.norm(g)

        def add(state):
            v, r, terms = state
            return v + step * r, r - step * operator(r), terms + 1

        def unfinished(state):
            _, r, terms = state
            return (jnp.linalg.norm(r) > target) & (terms < self.num_terms)

        init = (jnp.zeros_like(g), g, jnp.asarray(0, jnp.int32))
        v, r, terms = jax.lax.while_loop(unfinished, add, init)
        size = jnp.linalg.norm(g)
        return v, diagnose(
            "Neumann",
            damping=damping,
            converged=jnp.linalg.norm(r) <= target,
            relative_residual=jnp.linalg.norm(r) / jnp.where(size > 0, size, 1.0),
            iterations=terms,
            certificate=residual_certificate(r, v, damping),
        )


def power_iteration(
    rows: AbstractRows, num_steps: int
) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """The largest eigenvalue of `X^T X`, from below, and its direction."""

    def step(_, u):
        w = _product(rows, u)
        size = jnp.linalg.norm(w)
        return jnp.where(size > 0, w / jnp.where(size > 0, size, 1.0), u)

    start = jr.normal(jr.key(827), (rows.dim,), jnp.float64)
    u = jax.lax.fori_loop(0, num_steps, step, start / jnp.linalg.norm(start))
    return u @ _product(rows, u), u


def _product(rows: AbstractRows, v: Float[Array, " d"]) -> Float[Array, " d"]:
    return rows.normal_mv(v.astype(rows.dtype)).astype(jnp.float64)


def _finite(name: str, v: Float[Array, " d"], damping, iterations: int) -> Info:
    return diagnose(
        name,
        damping=damping,
        converged=jnp.all(jnp.isfinite(v)),
        iterations=iterations,
    )
