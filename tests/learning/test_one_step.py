"""What one outer step looks at, keeps and draws: by its own numbers, computed again."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from learning_setups import config_of, learner_of

from hyperirl import demos, tasks
from hyperirl.hypergradient import MLIRL, AbstractEstimator, Exact, outer_loss
from hyperirl.inner import Paced
from hyperirl.learning import loop, set_up, setup
from hyperirl.learning.step import outer_step
from hyperirl.options import Options
from hyperirl.rewards import TableReward
from hyperirl.rewards.polynomial import REACH


@pytest.fixture(scope="module")
def shown():
    return demos.collect("tabular", 40, seed=0)


@pytest.fixture(scope="module")
def first(shown):
    """A learner with an exact hypergradient, and a reward that prefers something."""
    learner, state = learner_of("tabular", shown, 4, method="exact")
    reward = TableReward(jr.normal(jr.key(0), (8, 3), jnp.float32))
    return learner, dataclasses.replace(state, reward=reward)


@pytest.fixture(scope="module")
def stepped(first):
    learner, state = first
    return outer_step(learner, state, 4, jnp.float32(0.0))


def mean_nll(policy, trajectories):
    log_prob = jax.vmap(jax.vmap(policy.log_prob))
    taken = log_prob(trajectories.observations[:, :-1], trajectories.actions)
    return -float(jnp.mean(jnp.sum(jnp.where(trajectories.mask, taken, 0.0), axis=1)))


def test_a_reward_is_selected_by_validation_episodes(first, stepped):
    learner, (new, row, _) = first[0], stepped
    policy = new.inner.policy
    assert float(row.nll_valid) == pytest.approx(mean_nll(policy, learner.valid))
    assert float(row.nll_valid) != pytest.approx(mean_nll(policy, learner.train))
    assert float(new.best.nll) == float(row.nll_valid)


def test_the_trust_region_judges_by_training_episodes(first, stepped):
    learner, (new, row, _) = first[0], stepped
    loss = lambda part: float(outer_loss(new.inner.policy, part, learner.problem))
    assert float(row.outer_loss) == pytest.approx(loss(learner.train))
    assert float(row.outer_loss) != pytest.approx(loss(learner.valid))
    assert float(new.trust.base.loss) == float(row.outer_loss)


def test_the_hypergradient_is_of_training_episodes(first, stepped):
    (learner, state), (new, row, agent) = first, stepped
    exact = eqx.filter_jit(Exact(learner.environment))
    policy, problem = new.inner.policy, learner.problem
    found = exact(policy, state.reward, learner.train, agent, problem)
    assert float(row.h_norm) == pytest.approx(float(found.diagnostics.norm), rel=1e-4)


def test_the_reward_that_is_kept_is_the_one_that_was_judged(first, stepped):
    """Not the one it has become, which nobody has solved for yet."""
    (_, state), (new, _, _) = first, stepped
    np.testing.assert_array_equal(new.best.reward.table, state.reward.table)
    assert not np.array_equal(new.reward.table, state.reward.table)


def test_every_step_draws_other_trajectories(first, stepped):
    learner, state = first
    later = dataclasses.replace(state, step=jnp.asarray(1, jnp.int32))
    again = outer_step(learner, later, 4, jnp.float32(0.0))[2]
    assert not np.array_equal(again.actions, stepped[2].actions)


def test_a_good_step_ends_a_row_of_those_that_were_left_out(first):
    learner, state = first
    before = dataclasses.replace(state, skipped=jnp.asarray(3, jnp.int32))
    assert int(outer_step(learner, before, 4, jnp.float32(0.0))[0].skipped) == 0


class Lost(AbstractEstimator):
    """An estimate that is not a number."""

    def update(self, state, policy, reward, expert, agent, problem):
        estimate = MLIRL()(policy, reward, expert, agent, problem)
        lost = jax.tree.map(lambda leaf: jnp.nan * leaf, estimate.h)
        return eqx.tree_at(lambda e: e.h, estimate, lost), state


def test_a_direction_that_is_not_finite_is_left_out_whatever_becomes_of_it(shown):
    """The optimizer hides it: the reward alone would not tell."""
    learner, state = learner_of("tabular", shown, 4, natural=False)
    hides = optax.set_to_zero()
    learner = dataclasses.replace(
        learner, estimator=Lost(), check=None, optimizer=hides, rate=None
    )
    state = dataclasses.replace(state, moments=hides.init(None))
    new, row, _ = outer_step(learner, state, 4, jnp.float32(0.0))
    assert int(row.skipped) == int(new.skipped) == 1


def test_settings_of_the_curvature_reach_it(shown):
    said = Options(method="sketch", sketch_size=5, expected_fisher=False)
    found = set_up("tabular", shown, said).estimator
    assert (found.solver.size, found.expected) == (5, False)
    assert set_up("tabular", shown, Options()).estimator.expected


def test_lqr_has_its_own_damping_and_ml_irl_its_own_pace():
    """Of the largest eigenvalue, a tenth on LQR and ten times it elsewhere."""
    assert (config_of("lqr").damping, config_of("cartpole").damping) == (0.1, 10.0)
    single = config_of("lqr", method="ml-irl")
    assert (single.steps, single.inner_updates) == (10 * config_of("lqr").steps, 1)
    assert config_of("lqr", method="ml-irl", steps=7).steps == 7


def test_robots_match_the_expert_unless_another_method_is_asked_for():
    robot = "gym:Pendulum-v1"
    assert (config_of("lqr").method, config_of(robot).method) == ("fisher", "matching")
    assert config_of(robot, method="sketch").method == "sketch"
    assert config_of(robot, paper=True).method == "fisher"


def test_matching_is_expert_minus_agent_at_the_pace_of_fisher(shown):
    matching, fisher = config_of("lqr", method="matching"), config_of("lqr")
    assert dataclasses.replace(matching, method="fisher") == fisher
    found = set_up("tabular", shown, Options(method="matching"))
    assert isinstance(found.estimator, MLIRL) and found.natural is not None


def test_actions_that_are_choices_have_means_of_four_solutions():
    assert (config_of("cartpole").average, config_of("pendulum").average) == (4, 1)
    world = tasks.make("cartpole").environment
    assert setup.make_inner(config_of("cartpole", average=3), world).average.size == 3
    paced = setup.make_inner(config_of("cartpole", average=0), world).average
    assert isinstance(paced, Paced)


@pytest.mark.parametrize("task", ["pendulum", "lqr"])
def test_a_mean_at_the_pace_of_natural_steps_needs_such_steps(task):
    with pytest.raises(ValueError, match="`average` is 0, a mean at the pace"):
        set_up(task, None, Options(average=0))
    set_up(task, None, Options(average=0, natural=True, trust_region=False))


def test_trajectories_are_doubled_twice_at_most_and_only_in_noise(shown):
    said = Options(agent_episodes=4)
    config = set_up("tabular", shown, said).config
    learner, state = learner_of("tabular", shown, 4, agent_episodes=4)
    counts = []
    for snr in (5.0, 0.1, 0.1, 0.1):
        state = dataclasses.replace(state, snr=jnp.float32(snr))
        state = loop._more_episodes(learner, config, state)
        counts.append(int(state.agent_episodes))
    assert counts == [4, 8, 16, 16]


def test_more_trajectories_forget_how_noisy_fewer_were(shown):
    config = set_up("tabular", shown, Options(agent_episodes=4)).config
    learner, state = learner_of("tabular", shown, 4, agent_episodes=4)
    noisy = dataclasses.replace(state, snr=jnp.float32(0.1))
    assert np.isnan(loop._more_episodes(learner, config, noisy).snr)


def test_the_environment_is_the_one_that_was_demonstrated():
    made = demos.collect("lqr", 4, options={"horizon": 20})
    assert set_up("lqr", made, Options()).environment.horizon == 20


def test_a_polynomial_reward_is_not_flat_between_the_expert_and_the_untrained():
    """Where policies start is within its reach, though no demonstration is there."""
    here = demos.load("pendulum")
    far = here.trajectories.observations.at[..., 2].add(100.0)
    shown = dataclasses.replace(here.trajectories, observations=far)
    moved = dataclasses.replace(here, trajectories=shown)
    said = Options(reward="additive", method="matching")
    seen = set_up("pendulum", moved, said).reward.normalizer
    speed = seen(jnp.zeros(4, jnp.float32))[2]
    assert -REACH < float(speed) < -0.5
