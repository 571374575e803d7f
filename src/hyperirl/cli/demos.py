"""`hyperirl demos`: collect demonstrations and look at them."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from hyperirl.demos import Provenance, Spread, Summary


@dataclasses.dataclass(frozen=True)
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
    temperature: float | None = None
    """How much the expert's entropy is worth, against its reward; 0.1 by default, 1 for
    pendulum."""
    discount: float = 0.99
    """How much the next step is worth, against this one."""
    updates: int = 150
    """Updates of PPO, where the expert must be trained."""
    option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE, a number of the environment to change; may be given several times."""
    overwrite: tyro.conf.FlagCreatePairsOff[bool] = False
    """Replace the file if there is one."""

    def run(self) -> None:
        """Fails before the training, not after it, if the file must not be written."""
        from hyperirl import demos
        from hyperirl.progress import progress_bar

        demos.check_writable(self.out, overwrite=self.overwrite)
        effort = demos.Effort(num_updates=self.updates)
        with progress_bar(f"Expert for {self.env}") as show:
            collected = demos.collect(
                self.env,
                self.episodes,
                seed=self.seed,
                temperature=self.temperature,
                discount=self.discount,
                options=_parse_options(self.option),
                effort=effort,
                on_progress=show,
            )
        demos.save(collected, self.out, overwrite=self.overwrite)
        found = demos.summarize(collected)
        print(f"Wrote {found.num_episodes} episodes of {self.env} to {self.out}.")
        print(f"Look at them:  hyperirl demos inspect {self.out}")


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Show what demonstrations hold, and check them.

    For example:
        hyperirl demos inspect cartpole
        hyperirl demos inspect my_demos.npz
        hyperirl demos inspect my_demos.npz --json
    """

    source: Annotated[str, tyro.conf.Positional]
    """A .npz file, or the name of bundled demonstrations: cartpole, lqr, ..."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print JSON instead."""

    def run(self) -> None:
        """Prints, and writes nothing."""
        from hyperirl import demos

        loaded = demos.load(self.source)
        found = demos.summarize(loaded)
        if self.json:
            fields = dataclasses.asdict(loaded.provenance) | dataclasses.asdict(found)
            print(json.dumps(fields, indent=2))
            return
        _print_summary(self.source, loaded.provenance, found)


@dataclasses.dataclass(frozen=True)
class Demos:
    """Collect demonstrations, or look at them."""

    command: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[Collect, tyro.conf.subcommand("collect")]
            | Annotated[Inspect, tyro.conf.subcommand("inspect")]
        ]
    ]

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


def _print_summary(source: str, provenance: "Provenance", found: "Summary") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(provenance, found):
        facts.add_row(name, Text(value))
    console.print(source, style="bold", markup=False, soft_wrap=True)
    console.print(facts)
    ranges = Table("", *("minimum", "mean", "deviation", "maximum"), box=None)
    for column in ranges.columns[1:]:
        column.justify = "right"
    for name, spread in _spreads(found):
        numbers = dataclasses.astuple(spread)
        ranges.add_row(name, *(f"{number:.4g}" for number in numbers))
    console.print(ranges)
    console.print(
        f"All of it is well-formed. Load it:  hyperirl.demos.load({source!r})"
    )


def _facts(provenance: "Provenance", found: "Summary") -> list[tuple[str, str]]:
    """What there is one value of."""
    known = lambda value: "not recorded" if value is None else str(value)
    options = ", ".join(f"{k}={v}" for k, v in provenance.options.items())
    ends = f"{found.num_terminated} terminated, "
    ends += f"{found.num_episodes - found.num_terminated} cut off"
    facts = [
        ("environment", known(provenance.environment)),
        ("options", options or "none"),
        ("expert", known(provenance.expert)),
        ("temperature", known(provenance.temperature)),
        ("discount", known(provenance.discount)),
        ("seed", known(provenance.seed)),
        ("hyperirl version", known(provenance.hyperirl_version)),
        ("episodes", f"{found.num_episodes} ({ends})"),
        ("steps", str(found.num_steps)),
    ]
    if found.action_shares is not None:
        shares = enumerate(found.action_shares)
        facts.append(("actions", ", ".join(f"{a}: {share:.1%}" for a, share in shares)))
    if found.expert_nll is None:
        facts.append(("expert NLL", "not recorded"))
    else:
        nll = f"{found.expert_nll.mean:.2f} an episode, the floor of every PolicyNLL"
        if found.uniform_nll is not None:
            nll += f" (uniform actions: {found.uniform_nll:.2f})"
        facts.append(("expert NLL", nll))
    return facts


def _spreads(found: "Summary") -> list[tuple[str, "Spread"]]:
    """What is a distribution of numbers."""
    rows = [("length", found.lengths)]
    if found.returns is not None:
        rows.append(("return", found.returns))
    if found.expert_nll is not None:
        rows.append(("expert NLL", found.expert_nll))
    rows += [(f"observation {i}", s) for i, s in enumerate(found.observations)]
    rows += [(f"action {i}", s) for i, s in enumerate(found.actions or ())]
    return rows
