"""An episode as a film: a GIF, or an MP4 where there is an encoder."""

import io
from typing import Any, Literal

import jax.random as jr
import numpy as np

from hyperirl.environments import AbstractWorld
from hyperirl.films.canvas import GREEN, PAGE, RULE, Canvas, palette
from hyperirl.films.scenes import HEIGHT, WIDTH, Episode, scene
from hyperirl.policies import AbstractPolicy
from hyperirl.rewards import AbstractReward
from hyperirl.rollout import rollout

Format = Literal["gif", "mp4", "png"]
_FOOT = 44  # Pixels below the scene, for the reward.
_SECONDS = 8.0  # A film of many frames is this long.


def play(
    environment: AbstractWorld,
    policy: AbstractPolicy,
    reward: AbstractReward | None = None,
    *,
    seed: int = 0,
    greedy: bool = False,
) -> Episode:
    """One episode of a policy.

    Args:
        environment: Where it acts.
        policy: Who acts.
        reward: What its steps are paid, to be shown.
        seed: Decides everything random.
        greedy: Whether it takes the likeliest action in place of a draw.
    """
    actor = _Greedy(policy) if greedy else policy
    batch = rollout(environment, actor, 1, key=jr.key(seed), record_rewards=False)
    length = int(batch.lengths[0])
    observations = np.asarray(batch.observations)[0, : length + 1]
    actions = np.asarray(batch.actions)[0, :length]
    rewards = None if reward is None else np.asarray(reward(observations[:-1], actions))
    return Episode(observations, actions, rewards)


class _Greedy(AbstractPolicy):
    """Always takes the likeliest action."""

    policy: AbstractPolicy

    def distribution(self, observation: Any) -> Any:
        return self.policy.distribution(observation)

    def act(self, observation: Any, noise: Any) -> Any:
        return self.policy.distribution(observation).mode()


def episode_film(
    environment: AbstractWorld,
    episode: Episode,
    *,
    format: Format = "gif",
    max_frames: int = 120,
) -> bytes:
    """A film of an episode, as the bytes of a file.

    Args:
        environment: What it was played in.
        episode: What happened.
        format: `gif`, `mp4`, or `png` for a still of its middle.
        max_frames: Longer episodes are shown in leaps.
    """
    moments = np.arange(episode.num_steps)
    if episode.num_steps > max_frames:
        moments = np.linspace(0, episode.num_steps - 1, max_frames).round().astype(int)
    draw = scene(environment, episode)
    frame = lambda moment: _with_foot(draw(int(moment)), episode, int(moment))
    if format == "png":
        return _encode([frame(moments[len(moments) // 2])], "png", 0)
    duration = max(20, round(1000 * min(_SECONDS / len(moments), 0.1)))
    return _encode([frame(moment) for moment in moments], format, duration)


def _with_foot(canvas: Canvas, episode: Episode, moment: int) -> Any:
    """The scene, and below it the reward until then."""
    from PIL import Image

    foot = Canvas(WIDTH, _FOOT, (WIDTH / 2, _FOOT / 2), 1.0)
    words = f"step {moment + 1} of {episode.num_steps}"
    if episode.rewards is not None:
        words += f"     learned reward {episode.rewards[moment]:+.3f}"
        low, high = float(episode.rewards.min()), float(episode.rewards.max())
        heights = 5 + 16 * (episode.rewards - low) / max(high - low, 1e-9)
        across = np.linspace(16, WIDTH - 16, max(episode.num_steps, 2))
        points = list(zip(across.tolist(), heights.tolist(), strict=False))
        foot.line(points, RULE, 1.5)
        foot.line(points[: moment + 1], GREEN, 1.5)
        foot.circle(points[moment], 3, GREEN)
    foot.text((16, _FOOT - 2), words)
    picture = Image.new("RGB", (WIDTH, HEIGHT + _FOOT), PAGE)
    picture.paste(canvas.finish(), (0, 0))
    picture.paste(foot.finish(), (0, HEIGHT))
    return picture


def _encode(frames: list[Any], format: Format, duration: int) -> bytes:
    if format == "mp4":
        return _mp4(frames, 1000 / duration)
    stream = io.BytesIO()
    if format == "png":
        frames[0].save(stream, "png")
        return stream.getvalue()
    few = [frame.quantize(palette=palette(), dither=0) for frame in frames]
    few[0].save(
        stream, "gif", save_all=True, append_images=few[1:], duration=duration, loop=0
    )
    return stream.getvalue()


def _mp4(frames: list[Any], frames_per_second: float) -> bytes:
    try:
        import imageio.v3 as imageio
        import imageio_ffmpeg  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError(
            "An MP4 needs the package imageio-ffmpeg, which is not installed here; "
            "install it, or write a GIF."
        ) from error
    pictures = np.stack([np.asarray(frame) for frame in frames])
    return imageio.imwrite("<bytes>", pictures, extension=".mp4", fps=frames_per_second)
