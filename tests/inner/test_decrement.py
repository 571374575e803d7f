"""Newton's decrement against the exact gap, near the optimum where it means that."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from inner_problems import MDP, PROBLEM

from hyperirl import exact
from hyperirl.inner.acting import act, start
from hyperirl.inner.diagnostics import GradientEstimate, newton_decrement
from hyperirl.policies import softmax_table


def test_newtons_decrement_is_the_gap_near_the_optimum(getkey):
    """The gradient is exact; only the states of the Fisher matrix are sampled."""
    best = exact.tabular.soft_value_iteration(MDP, MDP.rewards, PROBLEM).logits
    table = best + 0.1 * jr.normal(getkey(), best.shape)
    policy = softmax_table(table.astype(jnp.float32))
    expected = exact.tabular.optimality_gap(MDP, table, MDP.rewards, PROBLEM)

    @eqx.filter_jit
    def decrement(key):
        start_key, warm_key, key = jr.split(key, 3)
        actors = start(MDP, 64, key=start_key)
        actors, _ = act(MDP, policy, actors, 60, key=warm_key)
        batch = act(MDP, policy, actors, 1200, key=key)[1]
        loss = lambda x: exact.tabular.inner_loss(MDP, x, MDP.rewards, PROBLEM)
        gradient = jax.grad(loss)(table).T.reshape(-1).astype(jnp.float32)
        groups = jnp.tile(gradient[None, :], (16, 1))
        return newton_decrement(policy, batch, GradientEstimate(groups), PROBLEM)

    found, error = decrement(getkey())
    np.testing.assert_allclose(found, expected, rtol=0.15)
    assert error < 1e-3 * found
