"""What is odd is said, and nothing else is."""

import dataclasses

import gymnasium as gym
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import Demos, DemosError, Provenance, from_arrays, oddities
from hyperirl.demos.determinism import evidence_of_determinism
from hyperirl.demos.following import share_astray
from hyperirl.environments import LQR, CartPole, Pendulum
from hyperirl.policies import mlp_policy
from hyperirl.rollout import rollout
from hyperirl.worlds import make_world


def names(found):
    return [oddity.name for oddity in found]


@pytest.mark.parametrize("name", demos.bundled)
def test_nothing_is_odd_about_ours(name):
    assert oddities(demos.load(name)) == ()


@pytest.fixture(scope="module")
def cartpole():
    return demos.load("cartpole")[:12]


@pytest.fixture(scope="module")
def pendulum():
    return demos.load("pendulum")[:12]


def with_trajectories(given, **changes):
    changed = dataclasses.replace(given.trajectories, **changes)
    return Demos(changed, given.provenance, given.expert_log_probs)


def missing(given, what):
    said = dataclasses.replace(given.provenance, missing=(what,))
    return Demos(given.trajectories, said, given.expert_log_probs)


def test_an_oddity_is_one_sentence(cartpole):
    (oddity,) = oddities(Demos(cartpole.trajectories, cartpole.provenance))
    assert oddity.name == "no-log-probabilities"
    sentence = str(oddity)
    assert sentence.startswith("The expert's log-probabilities were not recorded, so")
    assert sentence.endswith(".") and sentence.count(". ") == 0 and "\n" not in sentence


def test_copies_are_found(cartpole):
    again = cartpole[np.array([*range(12), 3, 5])]
    (oddity,) = oddities(again)
    assert oddity.name == "duplicated-episodes" and "2 of 14" in oddity.what


def test_few_episodes_are_pointed_out(cartpole):
    assert names(oddities(cartpole[:1])) == ["too-few-episodes"]
    assert "1 episode" in str(oddities(cartpole[:1])[0])
    assert names(oddities(cartpole[:2])) == ["too-few-episodes"]
    assert names(oddities(cartpole[:3])) == ["few-episodes"]
    assert names(oddities(cartpole[:10])) == []


def test_observations_that_never_change_are_found(cartpole):
    seen = cartpole.trajectories.observations.at[..., 2].set(0.5)
    unknown = Demos(
        dataclasses.replace(cartpole.trajectories, observations=seen),
        Provenance(),
        cartpole.expert_log_probs,
    )
    (oddity,) = oddities(unknown)
    assert oddity.name == "constant-observations" and "(number 2)" in oddity.what


def test_rewards_of_another_environment_are_found(pendulum):
    rewards = pendulum.trajectories.rewards.at[0, :12].add(0.25)
    (oddity,) = oddities(with_trajectories(pendulum, rewards=rewards))
    assert oddity.name == "other-rewards"
    assert "0.5%" in oddity.what and "0.25" in oddity.what
    other = Pendulum(horizon=200, mass=2.0)
    assert "other-rewards" not in names(oddities(pendulum, Pendulum(horizon=200)))
    assert "steps-left-out" in names(oddities(pendulum, other))


def test_an_environment_they_cannot_be_from_is_refused(pendulum):
    with pytest.raises(DemosError, match="CartPole has 4"):
        oddities(pendulum, CartPole())


@pytest.mark.parametrize("stride", [2, 20])
def test_subsampled_trajectories_are_found(cartpole, stride):
    batch = cartpole.trajectories
    thin = lambda rows: [np.asarray(row)[:441:stride] for row in rows]
    thinned = from_arrays(
        thin(batch.observations),
        [row[:-1] for row in thin(batch.actions)],
        rewards=[row[:-1] for row in thin(batch.rewards)],
        terminated=[False] * 12,
        provenance=dataclasses.replace(cartpole.provenance, horizon=None),
    )
    found = oddities(thinned)
    assert names(found) == ["steps-left-out", "no-log-probabilities"]
    assert "do not lead where CartPole leads" in found[0].what


def test_steps_said_to_be_left_out_are_found(cartpole):
    (oddity,) = oddities(missing(cartpole, "steps"))
    assert oddity.name == "steps-left-out"


def test_chance_in_the_environment_is_no_oddity():
    lqr = demos.load("lqr")[:12]
    assert names(oddities(lqr, LQR())) == []


def test_a_last_observation_that_is_missing_is_found(cartpole):
    (oddity,) = oddities(missing(cartpole, "last observations"))
    assert oddity.name == "missing-last-observations"
    batch, rows = cartpole.trajectories, np.arange(12)
    before = batch.observations[rows, batch.lengths - 1]
    repeated = batch.observations.at[rows, batch.lengths].set(before)
    found = oddities(with_trajectories(cartpole, observations=repeated))
    assert "missing-last-observations" in names(found)


def test_terminations_that_are_missing_are_found(cartpole):
    (oddity,) = oddities(missing(cartpole, "terminations"))
    assert oddity.name == "absent-terminations" and "of 12 count" in oddity.what
    mask = cartpole.trajectories.mask.at[3, 100:].set(False)
    cut = with_trajectories(cartpole, mask=mask, terminated=jnp.zeros(12, bool))
    assert names(oddities(cut)) == ["absent-terminations"]


def test_clipped_actions_are_found(pendulum):
    clipped = jnp.clip(pendulum.trajectories.actions, -1.0, 1.0)
    given = with_trajectories(pendulum, actions=clipped)
    unknown = Demos(given.trajectories, Provenance(), given.expert_log_probs)
    (oddity,) = oddities(unknown)
    assert oddity.name == "actions-at-the-bounds"
    atmost = jnp.clip(3 * pendulum.trajectories.actions, -2.0, 2.0)
    given = with_trajectories(pendulum, actions=atmost)
    assert "actions-at-the-bounds" in names(oddities(given))
    inside = Demos(pendulum.trajectories, Provenance(), pendulum.expert_log_probs)
    assert names(oddities(inside)) == []


def recorded(act, environment="Pendulum-v1", episodes=10):
    env = gym.make(environment, max_episode_steps=150)
    return demos.record(env, act, episodes, seed=0)


swing = lambda o: 1.5 * np.tanh(np.array([2 * o[1] - o[2] + o[0] * o[2]]))
lean = lambda o: int(o @ np.array([0.1, 0.3, 1.0, 1.0]) > 0)


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def test_vectors_without_chance_are_noticed():
    found = oddities(recorded(swing))
    assert names(found)[0] == "deterministic"
    assert "differ by" in found[0].what


@pytest.mark.parametrize("scale, noticed", [(1e-4, True), (0.1, False), (0.5, False)])
def test_only_little_noise_is_almost_none(generator, scale, noticed):
    noisy = lambda o: swing(o) + scale * generator.normal(size=1)
    found = evidence_of_determinism(recorded(noisy))
    assert (found is not None) == noticed


def test_noise_shows_although_most_actions_are_clipped(generator):
    noisy = lambda o: np.clip(9 * swing(o) + 0.5 * generator.normal(size=1), -2, 2)
    assert evidence_of_determinism(recorded(noisy)) is None


def test_noise_that_lasts_for_an_episode_shows(generator):
    """Within an episode it would look like no noise at all."""

    def episode():
        shift = generator.normal(size=1)
        return recorded(lambda o: 0.5 * swing(o) + 0.3 * shift, episodes=1)

    batches = [episode().trajectories for _ in range(10)]
    rows = lambda name: [np.asarray(getattr(batch, name)[0]) for batch in batches]
    made = from_arrays(rows("observations"), rows("actions"), terminated=[False] * 10)
    assert evidence_of_determinism(made) is None


def test_choices_without_chance_are_noticed(generator):
    found = evidence_of_determinism(recorded(lean, "CartPole-v1", 20))
    assert "a simple rule predicts" in found
    flip = lambda o: lean(o) if generator.random() < 0.95 else 1 - lean(o)
    assert evidence_of_determinism(recorded(flip, "CartPole-v1", 20)) is None


def test_log_probabilities_tell_it_best(cartpole):
    sure = jnp.where(cartpole.trajectories.mask, -0.001, 0.0)
    certain = Demos(cartpole.trajectories, cartpole.provenance, sure)
    assert "probability of 99.9%" in evidence_of_determinism(certain)
    assert evidence_of_determinism(cartpole) is None


def places(chosen):
    """Four places in turn, seen as vectors, and what was chosen there."""
    seen = np.eye(4, dtype=np.float32)[np.arange(len(chosen) + 1) % 4]
    return from_arrays([seen], [np.asarray(chosen)], terminated=[False])


def test_the_same_choice_in_the_same_place_is_noticed(generator):
    chosen = np.array([2, 0, 1, 1])[np.arange(100) % 4]
    assert "where it came again" in evidence_of_determinism(places(chosen))
    chosen[generator.permutation(100)[:20]] = 3
    assert evidence_of_determinism(places(chosen)) is None


def test_always_the_same_is_no_chance():
    assert evidence_of_determinism(places(np.ones(5, int))) == "it always does the same"


def test_few_steps_show_nothing():
    assert evidence_of_determinism(places([0, 1, 0, 1])) is None
    few = from_arrays([np.ones((4, 2))], [np.eye(3, 2)], terminated=[False])
    assert evidence_of_determinism(few) is None


def test_robots_are_not_asked_where_an_action_leads():
    """They can start anywhere, but are no function that can be compiled."""
    world = make_world("InvertedPendulum-v5")
    policy = mlp_policy(4, world.action_space, key=jr.key(0))
    played = Demos(rollout(world, policy, 2, key=jr.key(1)))
    assert share_astray(played, world) is None
