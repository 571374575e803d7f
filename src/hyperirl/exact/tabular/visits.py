"""How often a policy, or a set of demonstrations, visits each state and action.

A table `w` of discounted visits is all that the outer loss knows about the expert, and
all that the inner loss knows about the agent: both are sums of `w` times something.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.environments import Tabular
from hyperirl.exact._float64 import float64
from hyperirl.exact.tabular.solution import kernel
from hyperirl.trajectories import Trajectories, discount_weights


def step_probabilities(
    mdp: Tabular, logits: Float[Array, "*time states actions"], horizon: int
) -> Float[Array, "{horizon} states actions"]:
    """`Pr(s_t = s, a_t = a, not over)` for every `t` before the horizon.

    The policy may depend on time: then `logits` has a first axis of that length.
    """
    pi = jax.nn.softmax(float64(logits))
    pi = jnp.broadcast_to(pi, (horizon, *pi.shape[-2:]))
    transitions = kernel(mdp)

    def step(states: Float[Array, " states"], pi: Float[Array, "states actions"]):
        taken = states[:, None] * pi
        return jnp.einsum("sa,sat->t", taken, transitions), taken

    _, taken = jax.lax.scan(step, initial_probabilities(mdp), pi)
    return taken


def initial_probabilities(mdp: Tabular) -> Float[Array, " states"]:
    """Those of the first state, summing to 1 in `float64`."""
    initial = float64(mdp.initial)
    return initial / jnp.sum(initial)


def occupancy(
    mdp: Tabular,
    logits: Float[Array, "states actions"],
    discount: float | Float[Array, ""],
    *,
    horizon: int | None = None,
) -> Float[Array, "states actions"]:
    """`w(s, a) = sum_t gamma^t Pr(s_t = s, a_t = a)`, before `horizon` if there is one.

    Without a horizon `d = (I - gamma P_pi')^-1 initial` and `w(s, a) = d(s) pi(a | s)`.
    """
    discount = jnp.asarray(discount, jnp.float64)
    if horizon is not None:
        weights = discount ** jnp.arange(horizon, dtype=jnp.float64)
        steps = step_probabilities(mdp, logits, horizon)
        return jnp.tensordot(weights, steps, axes=1)
    pi = jax.nn.softmax(float64(logits))
    moves = jnp.einsum("sa,sat->ts", pi, kernel(mdp))
    system = jnp.eye(mdp.num_states) - discount * moves
    return jnp.linalg.solve(system, initial_probabilities(mdp))[:, None] * pi


def demo_weights(
    demos: Trajectories, discount: float | Float[Array, ""], num_actions: int
) -> Float[Array, "states actions"]:
    """`w(s, a) = (1/N) sum_tau sum_t gamma^t [s_t = s, a_t = a]` of demonstrations."""
    weights = discount_weights(float64(demos), jnp.asarray(discount, jnp.float64))
    observations = float64(demos.observations[:, :-1])
    states = jnp.where(demos.mask[:, :, None], observations, 0.0)
    actions = jax.nn.one_hot(demos.actions, num_actions, dtype=jnp.float64)
    return jnp.einsum("nt,nts,nta->sa", weights, states, actions) / demos.num_episodes
