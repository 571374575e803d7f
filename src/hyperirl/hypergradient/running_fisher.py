"""A Fisher matrix that is kept and not formed: rank-one updates as the policy moves.

Natural hypergradient descent (Kong, Chen, Zhang and Mou, 2026) keeps the curvature of
the inner problem current while that problem is being solved. Here every agent episode
adds the outer product of its row (`hyperirl.scores.episode_rows`), and older ones fade:

    M_k = sum_{j<=k} forget^(k-j) X_j' X_j / sum_{j<=k} forget^(k-j),

so that a few episodes a step are enough while policies change slowly. The mean itself
is kept and factored once a step. The inverse could be kept instead, by Sherman and
Morrison's formula, but forgetting would then take the damping away with the rows.

At a policy that stays, with nothing forgotten, `M` tends to `alpha F` and the estimate
to `Fisher` with the same damping.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from hyperirl.curvature import AbstractDamping, Relative, as_damping, solve_held
from hyperirl.hypergradient.cross import AbstractCross
from hyperirl.hypergradient.estimate import (
    AbstractEstimator,
    Estimate,
    implicit_estimate,
)
from hyperirl.hypergradient.outer import outer_gradient
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.scores import episode_rows
from hyperirl.trajectories import Trajectories

_MAX_DIM = 10_000  # Parameters of the policy: 400 MB in float32.


class Running(eqx.Module):
    """A weighted mean of matrices."""

    mean: Float[Array, "dim dim"]
    weight: Float[Array, ""]  # Of all that the mean is of.

    def add(self, matrix: Float[Array, "dim dim"], forget: Float[Array, ""]):
        """The mean with one more, and with the others' weights times `forget`."""
        weight = forget.astype(self.weight.dtype) * self.weight + 1
        return Running(self.mean + (matrix - self.mean) / weight, weight)


class RunningFisher(AbstractEstimator):
    """`Fisher` with a running mean of rank-one updates (Kong et al., 2026)."""

    cross: AbstractCross
    damping: AbstractDamping = eqx.field(
        converter=as_damping, default_factory=lambda: Relative(0.1)
    )
    forget: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.9)
    """What is left of a step's weight after another one; 1 forgets nothing."""

    def __check_init__(self):
        if not isinstance(self.forget, Tracer) and not 0 < self.forget <= 1:
            raise ValueError(
                f"`forget` is what is left of a step after another one, got "
                f"{self.forget}; choose a share above 0 and up to 1, say 0.9."
            )

    def init(self, reward: Callable, policy: AbstractPolicy) -> Running:
        flat = ravel_pytree(partition(policy)[0])[0]
        if flat.size > _MAX_DIM:
            raise ValueError(
                f"A running Fisher matrix of {flat.size:,} parameters has "
                f"{flat.size**2:,} entries, and at most {_MAX_DIM:,} parameters are "
                "allowed; use a smaller policy, or method=fisher."
            )
        return Running(
            jnp.zeros((flat.size, flat.size), flat.dtype), jnp.zeros((), flat.dtype)
        )

    def update(
        self,
        state: Running,
        policy: AbstractPolicy,
        reward: Callable,
        expert: Trajectories,
        agent: Trajectories,
        problem: Problem,
    ) -> tuple[Estimate, Running]:
        rows = episode_rows(policy, agent, problem)
        state = state.add(rows.T @ rows, self.forget)
        g = outer_gradient(policy, expert, problem)
        solution = solve_held(state.mean, g, self.damping)
        estimate = implicit_estimate(
            solution, self.cross, policy, reward, expert, agent, problem
        )
        return estimate, state
