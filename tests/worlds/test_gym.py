"""Any Gymnasium environment, whoever restarts it: the same batches and episodes."""

import gymnasium
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from toys import Counter, Echo, vector

from hyperirl.policies import mlp_policy
from hyperirl.rollout import rollout
from hyperirl.spaces import Box, Discrete
from hyperirl.worlds import make_world
from hyperirl.worlds.spaces import reader, writer

MODES = pytest.mark.parametrize("mode", AutoresetMode)
KEY = jr.key(0)


def policy_of(world, key=KEY):
    return mlp_policy(world.observation_size, world.action_space, hidden=(), key=key)


def act(world, num_envs, num_steps, key=KEY):
    actors = world.start(num_envs, key=key)
    return world.act(policy_of(world), actors, num_steps, key=key)


def counting(mode, cut=False, lengths=(4, 2, 3)):
    if mode is None:  # Objects of their own.
        return make_world(lambda: Counter(3, cut), horizon=50)
    return make_world(vector(mode, lengths, cut), horizon=50)


@pytest.mark.parametrize("mode", [None, *AutoresetMode])
@pytest.mark.parametrize("cut", [False, True])
def test_a_batch_holds_steps_and_no_restarts(mode, cut):
    """Each counter's own: what it saw, what that led to, what was paid, how it ended.

    Fails if the observation after a restart is taken for the last one, if a restart in
    disguise is taken for a step, or if a cut is taken for an end.
    """
    world = counting(mode, cut)
    _, batch = act(world, 3, 11)
    assert batch.observations.shape == (11, 3, 1)
    seen, reached = batch.observations[..., 0], batch.next_observations[..., 0]
    np.testing.assert_array_equal(reached, seen + 1)
    np.testing.assert_array_equal(batch.rewards, 10 * reached)
    lengths = np.array([3, 3, 3] if mode is None else [4, 2, 3])
    ends = np.asarray(reached) == lengths[None]
    none = np.zeros_like(ends)
    np.testing.assert_array_equal(batch.terminated, none if cut else ends)
    np.testing.assert_array_equal(batch.truncated, ends if cut else none)
    if not world.engine.sample.can_restart:  # Else the first clocks are spread.
        np.testing.assert_array_equal(batch.times, seen)
    np.testing.assert_array_equal(seen[1:], np.where(ends[:-1], 0, reached[:-1]))


@MODES
def test_acting_goes_on_where_it_was(mode):
    world = make_world(vector(mode, (9, 9)), horizon=50)
    actors, first = act(world, 2, 3)
    _, second = world.act(policy_of(world), actors, 3, key=KEY)
    assert first.observations[-1, 0, 0] == 2
    assert second.observations[0, 0, 0] == 3


@pytest.mark.parametrize("mode", [None, *AutoresetMode])
@pytest.mark.parametrize("horizon", [2, 50])
def test_episodes_are_whole_and_as_many_as_asked_for(mode, horizon):
    """Also where they are cut before the environment would end them."""
    world = counting(mode)
    played = rollout(world, policy_of(world), 7, key=KEY, horizon=horizon)
    lengths = np.array([3] * 7 if mode is None else [4, 2, 3, 4, 2, 3, 4])
    np.testing.assert_array_equal(played.lengths, np.minimum(lengths, horizon))
    np.testing.assert_array_equal(played.terminated, lengths <= horizon)
    steps = np.arange(played.num_steps)
    for episode, length in enumerate(np.asarray(played.lengths)):
        seen = played.observations[episode, : length + 1, 0]
        np.testing.assert_array_equal(seen, np.arange(length + 1))
        paid = np.where(steps < length, 10 * (steps + 1), 0)
        np.testing.assert_array_equal(played.rewards[episode], paid)


@MODES
def test_episodes_that_never_end_are_cut_and_followed_by_others(mode):
    """Fails, by never ending, if what restarts by itself is waited for."""
    world = make_world(vector(mode, (10**9, 10**9, 4)), horizon=6)
    played = rollout(world, policy_of(world), 7, key=KEY)
    assert played.lengths.tolist() == [6, 6, 4, 6, 6, 4, 6]
    np.testing.assert_array_equal(played.observations[3, :, 0], np.arange(7))


def test_rewards_are_left_out_if_they_are_not_wanted():
    world = counting(None)
    played = rollout(world, policy_of(world), 2, key=KEY, record_rewards=False)
    assert played.rewards is None


def test_clocks_are_spread_where_environments_can_be_restarted():
    world = make_world(lambda: Counter(100), horizon=40)
    actors, batch = act(world, 4, 12)
    assert batch.times[0].tolist() == [0, 10, 20, 30]
    assert batch.truncated[:, 3].tolist() == [False] * 9 + [True] + [False] * 2
    assert batch.next_observations[9, 3, 0] == 10
    assert batch.observations[10, 3, 0] == 0


def test_actions_beyond_the_bounds_are_clipped_and_recorded_as_chosen():
    """The density is that of the choice; `Echo` refuses what is out of bounds."""
    world = make_world(Echo, horizon=10)
    _, batch = act(world, 2, 20)
    chosen = np.asarray(batch.actions[..., 0])
    assert np.abs(chosen).max() > 0.5
    np.testing.assert_allclose(batch.rewards, np.clip(chosen, -0.5, 0.5), rtol=1e-6)


@pytest.mark.parametrize("given", ["gym:CartPole-v1", "Pendulum-v1", Echo])
def test_the_same_key_gives_the_same_steps(given):
    batches = []
    for key in (KEY, KEY, jr.key(1)):
        world = make_world(given, horizon=30)
        batches.append(act(world, 3, 40, key)[1])
    first, again, other = (np.asarray(batch.observations) for batch in batches)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1"])
def test_an_id_its_spec_an_environment_and_a_factory_are_the_same_world(name):
    worlds = [
        make_world(name),
        make_world(gymnasium.spec(name)),
        make_world(gymnasium.make(name)),
        make_world(lambda: gymnasium.make(name)),
    ]
    facts = {(w.name, w.observation_size, w.action_space, w.horizon) for w in worlds}
    assert len(facts) == 1
    assert worlds[0].horizon == gymnasium.spec(name).max_episode_steps


def test_options_reach_the_environment():
    world = make_world("Pendulum-v1", g=1.0)
    assert world.engine.sample.environments[0].unwrapped.g == 1.0


def test_wrapped_environments_stay_wrapped():
    wrapped = gymnasium.wrappers.RescaleAction(gymnasium.make("Pendulum-v1"), -1, 1)
    assert make_world(wrapped).action_space == Box(1, -1.0, 1.0)


@pytest.mark.parametrize(
    "given, message",
    [
        (Counter, "`--horizon 200` on the command line"),
        (Counter(), "give a function"),
        ("NoSuch-v0", "knows no environment"),
        ("no_such_module:NoSuch-v0", "Cannot import"),
    ],
)
def test_what_cannot_be_made_says_what_to_do(given, message):
    with pytest.raises(ValueError, match=message):
        make_world(given)


def limited():
    """With a wrapper that cuts it, and no spec that says so."""
    inside = gymnasium.wrappers.TimeLimit(Counter(100), 7)
    return gymnasium.wrappers.TransformReward(inside, lambda reward: reward)


@pytest.mark.parametrize(
    "given, horizon",
    [
        (limited, 7),
        (lambda: gymnasium.wrappers.TimeLimit(limited(), 5), 5),
        (gymnasium.vector.SyncVectorEnv([limited, limited]), 7),
        (lambda: gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1"), 30), 30),
        (gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1"), 30), 30),
        (gymnasium.make("CartPole-v1", max_episode_steps=40), 40),
        (gymnasium.make_vec("CartPole-v1", num_envs=2), 500),
    ],
)
def test_episodes_are_cut_where_a_wrapper_or_the_spec_says(given, horizon):
    world = make_world(given)
    assert world.horizon == horizon
    assert world.name in (
        "TransformReward",
        "TimeLimit",
        "SyncVectorEnv",
        "CartPole-v1",
    )
    if not world.name.startswith("CartPole"):
        played = rollout(world, policy_of(world), 2, key=KEY)
        assert played.lengths.tolist() == [horizon, horizon]
    assert make_world(given, horizon=3).horizon == 3
    with pytest.raises(ValueError, match=f"cuts its episodes after {horizon} steps"):
        make_world(given, horizon=horizon + 1)


def test_demonstrations_say_where_episodes_are_cut_if_nothing_else_does():
    with pytest.warns(UserWarning, match=r"cut after 9 steps.*`horizon=200`"):
        assert make_world(Counter, longest=9).horizon == 9
    assert make_world(limited, longest=9).horizon == 7
    with pytest.raises(ValueError, match="got 0"):
        make_world(Counter, horizon=0)


def test_a_vector_environment_has_as_many_as_it_has():
    world = make_world(vector(AutoresetMode.SAME_STEP), horizon=5)
    with pytest.raises(ValueError, match="num_envs=3"):
        world.start(4, key=KEY)


def test_options_need_an_id():
    with pytest.raises(ValueError, match="length"):
        make_world(Counter, horizon=3, length=2)


def test_what_cannot_start_anywhere_says_so():
    world = make_world("Pendulum-v1")
    assert not world.can_start_anywhere
    with pytest.raises(ValueError, match="cannot start"):
        world.starting_at(jnp.zeros((1, 3)), chance=0.5, horizon=10)


NESTED = spaces.Dict(
    b=spaces.Tuple([spaces.Box(-1, 1, (2, 2)), spaces.Discrete(3, start=1)]),
    a=spaces.MultiDiscrete([2, 3]),
    c=spaces.MultiBinary(2),
)


def test_observations_are_flattened_without_loss():
    sample = {
        "a": np.array([1, 2]),
        "b": (np.array([[1.0, 2.0], [3.0, 4.0]]), 2),
        "c": np.array([1, 0]),
    }
    read = reader(NESTED)
    expected = spaces.utils.flatten(NESTED, sample).tolist()
    assert sorted(expected) == [0] * 6 + [1] * 5 + [2, 3, 4]
    assert read.size == len(expected)
    assert read.read(sample, 1)[0].tolist() == expected
    two = gymnasium.vector.utils.concatenate(
        NESTED, [sample] * 2, gymnasium.vector.utils.create_empty_array(NESTED, 2)
    )
    assert read.read(two, 2).tolist() == [expected] * 2


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Dict(x=spaces.Text(2)),
        spaces.Box(0, 2**40, (1,), np.int64),
    ],
    ids=str,
)
def test_other_observations_are_refused_with_a_way_out(space):
    with pytest.raises(ValueError, match=r"not supported.*TransformObservation"):
        reader(space)


@pytest.mark.parametrize(
    "space, way_out",
    [
        (spaces.MultiDiscrete([2, 2]), "TransformAction"),
        (spaces.Box(0, 5, (2,), np.int64), "TransformAction"),
        (spaces.Box(np.float32([0, 0]), np.float32([1, 2])), "RescaleAction"),
    ],
    ids=str,
)
def test_other_actions_are_refused_with_a_way_out(space, way_out):
    with pytest.raises(ValueError, match=rf"not supported.*{way_out}"):
        writer(space)


def test_choices_may_start_anywhere_and_vectors_may_have_any_shape():
    choices = writer(spaces.Discrete(3, start=5))
    assert choices.space == Discrete(3)
    assert choices.write(np.array([0, 2])).tolist() == [5, 7]
    matrices = writer(spaces.Box(-1, 1, (2, 2)))
    assert matrices.space == Box(4, -1.0, 1.0)
    assert matrices.write(np.full((3, 4), 9.0)).shape == (3, 2, 2)


def test_demonstrations_of_something_else_are_told_by_the_environments_name():
    from hyperirl import demos

    with pytest.raises(ValueError, match="4 numbers, and Pendulum-v1 has 3"):
        demos.check_against(demos.load("cartpole"), make_world("Pendulum-v1"))


def test_options_of_an_environment_of_gymnasiums_are_refused_with_a_way_out():
    from hyperirl import demos

    with pytest.raises(ValueError, match="name as `module:function`"):
        demos.collect("gym:Pendulum-v1", 1, options={"g": 9.81})
