"""How demonstrations are shown: as tables, as sentences, as a picture."""

import dataclasses
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperirl import demos
    from hyperirl.demos import Provenance, Spread, Summary


def plot(loaded: "demos.Demos", title: str, path: Path) -> None:
    """Draws demonstrations into a .png file."""
    from hyperirl import demos
    from hyperirl.experiments.figures import render

    draw = lambda figure: demos.draw(figure, loaded, title)
    picture = render(draw, demos.size_of(loaded))["png"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)


def print_oddities(odd: Sequence["demos.Oddity"]) -> None:
    """One sentence each."""
    if not odd:
        print("Nothing about it is odd.")
        return
    print("What is odd about it:")
    for oddity in odd:
        print(
            textwrap.fill(str(oddity), 88, initial_indent="- ", subsequent_indent="  ")
        )


def print_summary(source: str, provenance: "Provenance", found: "Summary") -> None:
    """What there is one value of, and what is spread."""
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
