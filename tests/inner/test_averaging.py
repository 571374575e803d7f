"""Running means of a policy's parameters are means."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from inner_problems import MDP, PPO_SOLVER, PROBLEM, REWARD, UNIFORM, logits

from hyperirl.inner import Averaged, Exponential, Paced, Window
from hyperirl.networks import Normalizer, partition
from hyperirl.policies import mlp_policy
from hyperirl.spaces import Discrete

NORMALIZER = Normalizer(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
POLICIES = [
    mlp_policy(
        2,
        Discrete(3),
        key=jr.key(i),
        hidden=(4,),
        normalizer=NORMALIZER,
        dtype=jnp.float64,
    )
    for i in range(7)
]


def flat(policy):
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(partition(policy)[0])])


@eqx.filter_jit
def run(average, policies):
    state = average.init(policies[0])
    for policy in policies:
        state = average.update(state, policy)
    return average.mean(state, policies[-1])


@pytest.mark.parametrize(
    ("average", "weights"),
    [
        (Window(3), [0, 0, 0, 0, 1, 1, 1]),
        (Window(1), [0, 0, 0, 0, 0, 0, 1]),
        (Window(7), [1, 1, 1, 1, 1, 1, 1]),
        (Window(16), [1, 1, 1, 1, 1, 1, 1]),
        (Exponential(1.0), [1, 1, 1, 1, 1, 1, 1]),
        (Exponential(0.5), [1, 2, 4, 8, 16, 32, 64]),
        (Paced(pace=0.25), [1, 2, 4, 8, 16, 32, 64]),
        (Paced(pace=1.0), [0, 0, 0, 0, 0, 0, 1]),
        (Paced(), [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_the_mean_after_seven_policies(average, weights):
    """The first ones count no more than they should, and data are not averaged."""
    mean = run(average, POLICIES)
    share = np.array(weights) / np.sum(weights)
    expected = share @ np.stack([flat(policy) for policy in POLICIES])
    np.testing.assert_allclose(flat(mean), expected, rtol=1e-6, atol=1e-12)
    assert eqx.tree_equal(mean.normalizer, NORMALIZER)


@pytest.mark.parametrize("average", [Window(3), Exponential(0.5), Paced()])
def test_the_mean_of_no_policy_is_the_policy_at_hand(average):
    first = POLICIES[0]
    assert eqx.tree_equal(average.mean(average.init(first), first), first)


@pytest.mark.parametrize("average", [Window(3), Exponential(0.5), Paced()])
def test_the_state_keeps_its_shapes_and_types(average):
    """It goes into checkpoints and through compiled loops."""
    for policy in (POLICIES[0], UNIFORM):  # In `float64` and in `float32`.
        state = average.init(policy)
        after = average.update(state, policy)
        kinds = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
        assert kinds(after) == kinds(state)
        mean = average.mean(after, policy)
        assert kinds(partition(mean)[0]) == kinds(partition(policy)[0])


def test_an_averaged_solver_answers_with_the_mean_of_its_answers():
    """And solves as it would by itself: the mean is not where it goes on from."""
    keys = [jr.key(i) for i in range(3)]
    averaged = Averaged(PPO_SOLVER, Window(2))
    alone = PPO_SOLVER.init(MDP, UNIFORM, key=jr.key(9))
    state = averaged.init(MDP, UNIFORM, key=jr.key(9))
    assert eqx.tree_equal(state.policy, UNIFORM)
    seen = []
    for key in keys:
        args = MDP, REWARD
        alone, expected = PPO_SOLVER.solve(*args, alone, PROBLEM, 2, key=key)
        state, report = averaged.solve(*args, state, PROBLEM, 2, key=key)
        seen.append(logits(alone.policy))
        mean = np.mean(seen[-2:], axis=0)
        np.testing.assert_allclose(logits(state.policy), mean, atol=1e-6)
        np.testing.assert_allclose(report.entropy, expected.entropy, rtol=1e-5)
    assert np.max(np.abs(seen[0] - seen[1])) > 0.01
    assert averaged.steps_per_update == PPO_SOLVER.steps_per_update
    assert averaged.required_policy(MDP) is None


def test_a_solver_tells_its_mean_how_fast_the_problem_moves():
    """What does not care stays as it is."""
    pace = jnp.float32(0.125)
    paced = Averaged(PPO_SOLVER, Paced()).at_pace(pace)
    assert eqx.tree_equal(paced, Averaged(PPO_SOLVER, Paced(pace=0.125)))
    others = PPO_SOLVER, Averaged(PPO_SOLVER, Window(3))
    assert all(eqx.tree_equal(other.at_pace(pace), other) for other in others)


def test_windows_without_room_are_refused():
    with pytest.raises(ValueError, match="at least one policy, got size=0"):
        Window(0)
