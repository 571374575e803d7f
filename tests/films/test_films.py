"""Episodes as films."""

import io

import jax.random as jr
import numpy as np
import pytest
from PIL import Image

from hyperirl import saving, tasks
from hyperirl.cli import main
from hyperirl.films import Episode, episode_film, play, scenes
from hyperirl.learning import create_folder, set_up
from hyperirl.options import Options
from hyperirl.policies import mlp_policy
from hyperirl.rewards import mlp_reward
from hyperirl.runs import RunFolder

CARTPOLE = tasks.make("cartpole").environment
BLUE, ORANGE = (0, 114, 178), (213, 94, 0)


def frames_of(film):
    image = Image.open(io.BytesIO(film))
    frames = []
    for i in range(image.n_frames):
        image.seek(i)
        frames.append(np.asarray(image.convert("RGB")))
    return frames


def cartpole_episode(states, rewards=None):
    """Stands in these states, and is pushed to the right."""
    observations = np.asarray([*states, states[-1]], np.float32)
    return Episode(observations, np.ones(len(states), int), rewards)


def center_of(frame, color):
    """Where pixels of a color are: right of the left edge, below the top."""
    near = np.abs(frame.astype(int) - color).sum(-1) < 40
    rows, columns = np.nonzero(near)
    return columns.mean(), rows.mean()


def test_the_pole_is_drawn_where_the_cart_is_and_leans_as_it_does():
    states = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0.5, 0], [0, 0, -0.5, 0]]
    frames = frames_of(episode_film(CARTPOLE, cartpole_episode(states)))
    upright, moved, right, left = [center_of(frame, BLUE) for frame in frames]
    meter = frames[0].shape[1] / (2.3 * 2.4)
    assert moved[0] - upright[0] == pytest.approx(meter, abs=1.5)
    # The middle of a pole of one meter moves by half the sine of its angle.
    assert right[0] - upright[0] == pytest.approx(np.sin(0.5) / 2 * meter, abs=2)
    assert left[0] - upright[0] == pytest.approx(-np.sin(0.5) / 2 * meter, abs=2)


def test_the_cart_is_pushed_where_the_action_says():
    episode = Episode(np.zeros((3, 4), np.float32), np.array([0, 1]))
    frames = frames_of(episode_film(CARTPOLE, episode))
    left, right = [center_of(frame, ORANGE)[0] for frame in frames]
    assert left < scenes.WIDTH / 2 < right


def test_curves_fill_their_place_whatever_their_level():
    columns = np.array([[7.0, 5.0], [8.0, 5.0], [9.0, 5.0]])
    np.testing.assert_allclose(scenes._curves(columns), [[0, 0.5, 1], [0, 0, 0]])


def test_a_pendulum_at_angle_zero_points_up():
    pendulum = tasks.make("pendulum").environment
    angles = np.array([0.0, np.pi, np.pi / 2])
    seen = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    episode = Episode(seen[[0, 1, 2, 2]], np.zeros((3, 1)))
    up, down, aside = [
        center_of(frame, BLUE) for frame in frames_of(episode_film(pendulum, episode))
    ]
    assert up[1] < aside[1] < down[1]
    assert aside[0] < up[0]  # Angles grow against the clock.


def test_long_episodes_are_shown_in_leaps_from_the_first_step_to_the_last():
    xs = np.linspace(-2, 2, 50)
    episode = cartpole_episode([[x, 0, 0, 0] for x in xs])
    frames = frames_of(episode_film(CARTPOLE, episode, max_frames=5))
    assert len(frames) == 5
    ends = [center_of(frame, BLUE)[0] for frame in frames]
    meter = frames[0].shape[1] / (2.3 * 2.4)
    assert ends[-1] - ends[0] == pytest.approx(4 * meter, abs=2)


def test_the_reward_is_drawn_below():
    states = [[0, 0, 0, 0]] * 3
    plain = episode_film(CARTPOLE, cartpole_episode(states), format="png")
    rewards = np.array([0.0, 1.0, 0.5])
    shown = episode_film(CARTPOLE, cartpole_episode(states, rewards), format="png")
    plain, shown = [np.asarray(Image.open(io.BytesIO(x))) for x in (plain, shown)]
    different = (plain != shown).any(axis=(1, 2))
    assert different[240:].any() and not different[:240].any()


@pytest.mark.parametrize("name", ["lqr", "tabular", "grid-world", "pendulum"])
def test_every_environment_can_be_filmed(name):
    environment = tasks.make(name).environment
    size, space = environment.observation_size, environment.action_space
    policy = mlp_policy(size, space, key=jr.key(0), hidden=())
    episode = play(environment, policy, seed=1)
    frames = frames_of(episode_film(environment, episode, max_frames=4))
    assert any((frames[0] != frame).any() for frame in frames[1:])


def test_one_step_is_a_film_too():
    episode = cartpole_episode([[0, 0, 0, 0]], np.zeros(1))
    assert len(frames_of(episode_film(CARTPOLE, episode))) == 1
    lqr = tasks.make("lqr").environment
    one = Episode(np.zeros((2, 4)), np.zeros((1, 2)))
    assert len(frames_of(episode_film(lqr, one))) == 1


def test_an_episode_is_decided_by_its_seed_and_greed_needs_none():
    policy = mlp_policy(4, CARTPOLE.action_space, key=jr.key(0), hidden=())
    reward = mlp_reward(4, CARTPOLE.action_space, key=jr.key(0), hidden=())
    first, again = [play(CARTPOLE, policy, reward, seed=1) for _ in range(2)]
    np.testing.assert_array_equal(first.observations, again.observations)
    assert len(first.observations) == first.num_steps + 1
    expected = reward(first.observations[:-1], first.actions)
    np.testing.assert_allclose(first.rewards, expected, rtol=1e-5)
    greedy = play(CARTPOLE, policy, seed=1, greedy=True)
    modes, _ = policy.predict(greedy.observations[:-1], deterministic=True)
    np.testing.assert_array_equal(greedy.actions, modes)


@pytest.fixture
def run(tmp_path):
    setup = set_up("cartpole", None, Options())
    folder = create_folder(setup, tmp_path / "run", [])
    policy = mlp_policy(4, CARTPOLE.action_space, key=jr.key(0), hidden=())
    saving.save_policy(policy, folder.policy_path)
    return folder.path


def test_a_run_is_played_into_its_folder(run, capsys):
    main(["play", str(run), "--frames", "3"])
    assert "Wrote" in capsys.readouterr().out
    assert len(frames_of((run / "film.gif").read_bytes())) == 3
    with pytest.raises(SystemExit):
        main(["play", str(run)])
    assert "already exists" in capsys.readouterr().err
    main(["play", str(run), "--overwrite", "--frames", "2", "--greedy"])
    assert len(frames_of((run / "film.gif").read_bytes())) == 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--out", "film.avi"], "give a .gif, a .mp4 or a .png file"),
        (["--frames", "0"], "must be at least 1"),
    ],
)
def test_what_cannot_be_filmed_is_one_sentence(run, capsys, arguments, words):
    with pytest.raises(SystemExit) as caught:
        main(["play", str(run), *arguments])
    assert caught.value.code == 2 and words in capsys.readouterr().err


def test_a_run_without_a_policy_is_said(tmp_path, capsys):
    RunFolder.create(tmp_path / "run", {"env": "cartpole"}, [])
    with pytest.raises(SystemExit):
        main(["play", str(tmp_path / "run")])
    assert "holds no policy yet" in capsys.readouterr().err
