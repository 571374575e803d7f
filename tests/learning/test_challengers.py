"""A policy that starts afresh finds out what the reward pays elsewhere."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hyperirl as hi
from hyperirl.environments import Tabular
from hyperirl.exact import tabular as exact
from hyperirl.hypergradient import ml_irl_gradient
from hyperirl.learning import Stopped
from hyperirl.learning.challenging import Challenger, Duel, answer_to, duel
from hyperirl.problem import problem as make_problem
from hyperirl.rewards import TableReward
from hyperirl.rollout import rollout

PROBLEM = make_problem(0.5, 0.9)


@pytest.fixture(scope="module")
def mdp():
    return hi.tasks.make("tabular").environment


@pytest.fixture(scope="module")
def sides(mdp):
    """The soft-optimal policy of a reward, and the uniform one, both acting."""
    assert isinstance(mdp, Tabular)
    reward = TableReward(mdp.rewards)
    single = lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x
    best = jax.tree.map(single, exact.soft_optimal_policy(mdp, reward, PROBLEM))
    blank = TableReward(jnp.zeros_like(mdp.rewards))
    even = jax.tree.map(single, exact.soft_optimal_policy(mdp, blank, PROBLEM))
    acted = lambda policy, seed: rollout(mdp, policy, 4000, key=jr.key(seed))
    return reward, (best, acted(best, 0)), (even, acted(even, 1))


def test_the_gain_is_the_difference_of_the_soft_returns(mdp, sides):
    """In float64, from the exact loss of each; the episodes are long enough."""
    reward, best, even = sides
    found = duel(reward, best, even, PROBLEM)
    loss = lambda side: exact.inner_loss(
        mdp, side[0].network.layers[0].weight.T, reward.table, PROBLEM
    )
    truth = float(loss(even) - loss(best))
    assert abs(float(found.gain) - truth) < 4 * float(found.error) < 0.2 * truth
    assert bool(found.won) and not bool(duel(reward, even, best, PROBLEM).won)


def test_a_gain_within_its_noise_is_none():
    assert not Duel(jnp.float32(1.9), jnp.float32(1.0)).won
    assert Duel(jnp.float32(2.1), jnp.float32(1.0)).won


def test_the_reward_learns_from_the_challenger_that_won_and_from_no_other(sides):
    reward, best, even = sides
    expert, challenger = best[1], Challenger(None, even[1])
    h = jax.tree.map(jnp.ones_like, eqx.filter(reward, eqx.is_inexact_array))
    answer = lambda gain: answer_to(
        Duel(jnp.float32(gain), jnp.float32(1.0)),
        h,
        reward,
        expert,
        challenger,
        PROBLEM,
    )
    against = ml_irl_gradient(reward, expert, even[1], PROBLEM)
    assert eqx.tree_equal(answer(3.0), against) and eqx.tree_equal(answer(-3.0), h)
    better = jax.tree.map(lambda r, d: r - 0.1 * d, reward, against)
    gain = lambda r: float(duel(r, even, (best[0], expert), PROBLEM).gain)
    assert gain(better) < gain(reward), "a step against it makes it earn less"


@pytest.fixture(scope="module")
def challenged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("challenged")
    made = hi.demos.collect("tabular", 20, seed=0)
    settings = dict(
        inner="ppo",
        natural=False,
        trust_region=False,
        inner_updates=1,
        agent_episodes=8,
        adaptive=False,
        challenge_every=2,
        steps=4,
        progress=False,
    )
    whole = hi.learn("tabular", made, out=folder / "whole", **settings)
    return made, settings, whole, folder


def test_every_step_says_how_the_challenger_did(challenged):
    *_, whole, _ = challenged
    gains = [row["challenger_gain"] for row in whole.metrics]
    assert np.all(np.isfinite(gains)) and len(set(gains)) == 4
    assert {row["challenger_won"] for row in whole.metrics} <= {0, 1}


def test_a_run_with_challengers_resumes_to_the_same_arrays(challenged):
    made, settings, whole, folder = challenged

    def stop(row):
        if row["step"] == 2:  # Just before a new challenger starts.
            raise KeyboardInterrupt

    with pytest.raises(Stopped):
        hi.learn("tabular", made, out=folder / "cut", on_step=stop, **settings)
    again = hi.resume(folder / "cut", progress=False)
    assert eqx.tree_equal(again.reward, whole.reward)
    last = lambda run: run.metrics[-1]["challenger_gain"]
    assert last(again) == last(whole)


def test_a_trust_region_and_challengers_exclude_each_other(challenged):
    made, settings, *_ = challenged
    with pytest.raises(ValueError, match="`challenge_every` is 2, and a trust region"):
        hi.learn("tabular", made, **settings | dict(natural=True, trust_region=True))
