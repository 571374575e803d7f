"""`hyperirl play`: an episode of a run's policy, as a film."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command, run_path

if TYPE_CHECKING:
    from hyperirl.films import Format
    from hyperirl.runs import RunFolder


@command
class Play:
    """Play an episode of a run's policy, and write a film of it.

    For example:
        hyperirl play runs/first
        hyperirl play runs/first --out film.mp4 --seed 3 --greedy
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The folder of the run, or `latest`."""
    out: Maybe[Path] = None
    """The file to write: .gif, .mp4 or .png (a still); film.gif in the folder of the
    run by default."""
    env: Maybe[str] = None
    """The environment, if the run was started with one of your own."""
    seed: int = 0
    """Decides where the episode starts, and what chance does."""
    greedy: Flag = False
    """Always take the likeliest action."""
    frames: int = 120
    """Longer episodes are shown in leaps."""
    overwrite: Flag = False
    """Replace the file if there is one."""

    def run(self) -> None:
        """Says how long the episode was, and where the film is."""
        from hyperirl.learning import subject_of
        from hyperirl.runs import RunFolder, atomic

        folder = RunFolder.open(run_path(self.folder))
        out = folder.path / "film.gif" if self.out is None else self.out
        format = _format(out)
        self._check(folder, out)
        from hyperirl.films import episode_film, play

        run = subject_of(folder, task=self.env, workers=0)
        episode = play(
            run.environment, run.policy, run.reward, seed=self.seed, greedy=self.greedy
        )
        film = episode_film(
            run.environment, episode, format=format, max_frames=self.frames
        )
        atomic.write_bytes(out, film)
        print(f"Played an episode of {episode.num_steps} steps. Wrote {out}.")

    def _check(self, folder: "RunFolder", out: Path) -> None:
        """Fails before anything is played."""
        if not folder.policy_path.exists():
            raise ValueError(
                f"{folder.path} holds no policy yet; let the run finish a step, or "
                f"continue it with `hyperirl resume {folder.path}`."
            )
        if self.frames < 1:
            raise ValueError(f"`--frames` must be at least 1, got {self.frames}.")
        if out.exists() and not self.overwrite:
            raise ValueError(
                f"{out} already exists; choose another `--out`, or give `--overwrite`."
            )
        try:
            import PIL  # noqa: F401
        except ImportError as error:
            raise ValueError(
                "Films need the package pillow, which is not installed here; install "
                "it with `pip install pillow`."
            ) from error


def _format(out: Path) -> "Format":
    for format in ("gif", "mp4", "png"):
        if out.suffix == f".{format}":
            return format
    raise ValueError(f"{out} is no film; give a .gif, a .mp4 or a .png file.")
