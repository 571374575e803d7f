"""An estimator may remember earlier steps, as optax's transformations do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, PyTree

from hyperirl.hypergradient import MLIRL, AbstractEstimator, Estimate
from hyperirl.networks import partition
from hyperirl.policies import softmax_table
from hyperirl.rewards import TableReward


class Averaged(AbstractEstimator):
    """The mean of all hypergradients so far."""

    inner: AbstractEstimator

    def init(self, reward, policy) -> tuple[Float[Array, ""], PyTree[Array]]:
        zeros = jax.tree.map(jnp.zeros_like, partition(reward)[0])
        return jnp.zeros(()), zeros

    def update(self, state, policy, reward, expert, agent, problem):
        count, mean = state
        estimate = self.inner(policy, reward, expert, agent, problem)
        follow = lambda old, new: old + (new - old) / (count + 1)
        mean = jax.tree.map(follow, mean, estimate.h)
        return Estimate(mean, estimate.diagnostics), (count + 1, mean)


@pytest.fixture
def parts(problem, everything):
    policy = softmax_table(jnp.zeros((2, 2)))
    return policy, TableReward(jnp.zeros((2, 2))), everything, problem


def test_what_an_estimator_remembers_goes_through_every_step(parts):
    policy, reward, everything, problem = parts
    estimator, step = Averaged(MLIRL()), eqx.filter_jit(Averaged.update)
    state, seen = estimator.init(reward, policy), []
    for part in range(3):
        batch = everything[300 * part : 300 * part + 8]
        args = policy, reward, everything, batch, problem
        estimate, state = step(estimator, state, *args)
        seen.append(MLIRL()(*args).h.table)
        mean = np.mean(seen, axis=0)
        np.testing.assert_allclose(estimate.h.table, mean, atol=1e-12)
    assert np.max(np.abs(seen[0] - seen[1])) > 0.1  # There is something to average.


def test_a_call_remembers_nothing(parts):
    policy, reward, everything, problem = parts
    args = policy, reward, everything, everything[:8], problem
    for _ in range(2):
        found = Averaged(MLIRL())(*args).h.table
        np.testing.assert_allclose(found, MLIRL()(*args).h.table, atol=1e-12)


def test_an_estimator_without_memory_has_an_empty_state(parts):
    policy, reward, everything, problem = parts
    state = MLIRL().init(reward, policy)
    assert jax.tree.leaves(state) == []
    args = policy, reward, everything, everything[:8], problem
    estimate, after = MLIRL().update(state, *args)
    assert after == state
    assert eqx.tree_equal(estimate, MLIRL()(*args))
