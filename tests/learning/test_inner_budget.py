"""The inner solver is run again while it is far from the optimum, and not without end.

A stand-in for it reports gaps that were written down before.
"""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from jaxtyping import Array, Float, Int

from hyperirl.environments import random_mdp
from hyperirl.hypergradient import MLIRL
from hyperirl.inner import AbstractInnerSolver, SolveReport
from hyperirl.learning import step
from hyperirl.learning.learner import init
from hyperirl.policies import AbstractPolicy, softmax_table
from hyperirl.problem import problem
from hyperirl.rewards import TableReward
from hyperirl.rollout import rollout

UPDATES = 3
FAR = 1e6


class Counted(eqx.Module):
    policy: AbstractPolicy
    solves: Int[Array, ""]


class Scripted(AbstractInnerSolver):
    """Its `i`-th solve reports `gaps[i]`."""

    gaps: Float[Array, " solves"]
    error: Float[Array, ""]

    @property
    def steps_per_update(self):
        return 1

    def init(self, environment, policy, *, key):
        return Counted(policy, jnp.zeros((), jnp.int32))

    def run(self, environment, reward, state, problem, num_updates, *, key):
        known = self.gaps[state.solves], self.error, num_updates
        where = lambda r: (r.gap, r.gap_error, r.steps)
        report = eqx.tree_at(where, SolveReport.unknown(), known)
        return Counted(state.policy, state.solves + 1), report


@pytest.fixture(scope="module")
def parts():
    mdp = random_mdp(key=jr.key(0), num_states=2, num_actions=2, horizon=2)
    policy = softmax_table(jnp.zeros((2, 2), jnp.float32))
    return mdp, policy, rollout(mdp, policy, 4, key=jr.key(0))


@pytest.mark.parametrize(
    "gaps, error, adaptive, solves",
    [
        pytest.param([0.0], 0.0, True, 1, id="near at once"),
        pytest.param([FAR, FAR, 0.0], 0.0, True, 3, id="near after three"),
        pytest.param([], 0.0, True, 6, id="never near"),
        pytest.param([], FAR, True, 1, id="far, within the noise"),
        pytest.param([np.nan], 0.0, True, 1, id="unknown"),
        pytest.param([], 0.0, False, 1, id="far, with a fixed budget"),
    ],
)
def test_it_is_run_until_it_is_near(parts, gaps, error, adaptive, solves):
    mdp, policy, episodes = parts
    gaps = gaps + [FAR] * 10
    learner = step.Learner(
        environment=mdp,
        agents=mdp,
        practice=mdp,
        problem=problem(),
        inner=Scripted(jnp.asarray(gaps, jnp.float32), jnp.float32(error)),
        estimator=MLIRL(),
        natural=None,
        check=None,
        challenge=None,
        radius=jnp.float32(1.0),
        train=episodes,
        valid=episodes,
        key=jr.key(1),
        rate=None,
        optimizer=optax.sgd(1.0),
        inner_updates=UPDATES,
        adaptive=adaptive,
        trust_region=False,
    )
    state = init(learner, TableReward(mdp.rewards), policy, 4)
    answer = step._solve(learner, learner.inner, state, jr.key(2))
    updates = answer.num_updates
    assert (answer.inner.solves, updates) == (solves, solves * UPDATES)
    np.testing.assert_allclose(answer.report.gap, gaps[solves - 1])  # The last one's.
