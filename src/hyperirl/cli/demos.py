"""`hyperirl demos`: collect demonstrations, look at them, convert them."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command
from hyperirl.cli.workers import Workers


@command
class Collect:
    """Make demonstrations of a soft-optimal expert.

    For lqr, tabular and grid-world the expert is exact and takes seconds; elsewhere PPO
    trains it on the true reward, which takes about a minute.

    For example:
        hyperirl demos collect --env lqr --out lqr.npz
        hyperirl demos collect --env cartpole --episodes 100 --out cartpole.npz
        hyperirl demos collect --env cartpole --option half_length=1 --out long.npz
    """

    out: Path
    """The .npz file to write."""
    env: str = "cartpole"
    """cartpole, cartpole-fixed, lqr, lqr-clipped, pendulum, tabular, grid-world;
    gym:ID for one of Gymnasium's; or your own as MODULE:NAME, which is imported."""
    episodes: int = 100
    """How many episodes."""
    seed: int = 0
    """Decides the expert's training and the episodes."""
    temperature: Maybe[float] = None
    """How much the expert's entropy is worth, against its reward; 0.1 by default, 1 for
    pendulum, 0.02 for gym:InvertedPendulum-v5."""
    discount: float = 0.99
    """How much the next step is worth, against this one."""
    updates: Maybe[int] = None
    """Updates of PPO, where the expert must be trained; 150 by default. For an
    environment of Gymnasium's 400, and 1,600 small ones if actions are numbers."""
    option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE, a number of the environment to change; may be given several times."""
    horizon: Maybe[int] = None
    """After how many steps episodes of an environment of Gymnasium's are cut; by
    default as it says."""
    scale: tyro.conf.OmitArgPrefixes[Workers] = Workers()
    overwrite: Flag = False
    """Replace the file if there is one."""

    def run(self) -> None:
        """Fails before the training, not after it, if the file must not be written."""
        from hyperirl import demos
        from hyperirl.progress import progress_bar

        demos.check_writable(self.out, overwrite=self.overwrite)
        effort = demos.Effort(num_updates=self.updates)
        self.scale.check_counted()
        with self.scale.ready(), progress_bar(f"Expert for {self.env}") as show:
            collected = demos.collect(
                self.env,
                self.episodes,
                seed=self.seed,
                temperature=self.temperature,
                discount=self.discount,
                options=_parse_options(self.option),
                effort=effort,
                on_progress=show,
                horizon=self.horizon,
                workers=self.scale.workers or 0,
                ray=self.scale.on_ray,
            )
        demos.save(collected, self.out, overwrite=self.overwrite)
        found = demos.summarize(collected)
        print(f"Wrote {found.num_episodes} episodes of {self.env} to {self.out}.")
        print(f"Look at them:  hyperirl demos inspect {self.out}")


@command
class Inspect:
    """Show what demonstrations hold, check them, and say what is odd about them.

    For example:
        hyperirl demos inspect cartpole
        hyperirl demos inspect my_demos.npz --plot my_demos.png
        hyperirl demos inspect folder_by_imitation --json
        hyperirl demos inspect D4RL/door/human-v2 --download
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DEMOS")]
    """A .npz or .csv file, a folder by Minari or imitation or of .csv files, the id of
    a Minari dataset, or the name of bundled demonstrations: cartpole, lqr, ..."""
    plot: Maybe[Path] = None
    """Draw them, too, and write the picture to this .png file."""
    json: Flag = False
    """Print JSON instead."""
    download: Flag = False
    """Fetch a Minari dataset that is not on this machine."""

    def run(self) -> None:
        """Prints, and writes nothing but the picture."""
        from hyperirl import demos
        from hyperirl.cli.showing import plot, print_oddities, print_summary

        if self.plot is not None and self.plot.suffix != ".png":
            raise ValueError(f"{self.plot} does not end in .png; choose such a name.")
        loaded = demos.load(self.source, download=self.download)
        found, odd = demos.summarize(loaded), demos.oddities(loaded)
        if self.plot is not None:
            plot(loaded, self.source, self.plot)
        if self.json:
            fields = dataclasses.asdict(loaded.provenance) | dataclasses.asdict(found)
            fields["oddities"] = [dataclasses.asdict(oddity) for oddity in odd]
            print(json.dumps(fields, indent=2))
            return
        print_summary(self.source, loaded.provenance, found)
        print_oddities(odd)
        if self.plot is not None:
            print(f"Drawn in {self.plot}")


@command
class Convert:
    """Write demonstrations in another format; every number stays the same.

    For example:
        hyperirl demos convert folder_by_imitation demos.npz
        hyperirl demos convert CartPole/expert-v0 demos.npz
        hyperirl demos convert demos.npz demos.csv
        hyperirl demos convert demos.npz dataset-v0
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DEMOS")]
    """Whatever `hyperirl demos inspect` takes."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """A .npz file; a .csv file, which keeps only the episodes; or, without an ending,
    the folder of a Minari dataset."""
    overwrite: Flag = False
    """Replace the file if there is one; a folder is never replaced."""
    download: Flag = False
    """Fetch a Minari dataset that is not on this machine."""

    def run(self) -> None:
        """Fails before reading if nothing must be written there."""
        from hyperirl import demos

        demos.check_writable(self.out, overwrite=self.overwrite)
        loaded = demos.load(self.source, download=self.download)
        demos.save(loaded, self.out, overwrite=self.overwrite)
        print(f"Wrote {loaded.num_episodes} episodes to {self.out}.")
        print(f"Look at them:  hyperirl demos inspect {self.out}")


# What may follow `hyperirl demos`.
Kind = (
    Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Convert, tyro.conf.subcommand("convert")]
)


@command
class Demos:
    """Collect demonstrations, look at them, or convert them."""

    command: tyro.conf.OmitSubcommandPrefixes[tyro.conf.OmitArgPrefixes[Kind]]

    def run(self) -> None:
        """Does what was asked for."""
        self.command.run()


def _parse_options(options: Sequence[str]) -> dict[str, Any]:
    parsed = {}
    for option in options:
        name, _, value = option.partition("=")
        try:
            parsed[name] = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"{option!r} is not NAME=VALUE with a number or a list as VALUE; "
                "write, for example, `--option half_length=1.0`."
            ) from error
    return parsed
