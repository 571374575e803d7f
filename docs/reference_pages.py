"""Writes the reference pages that follow from the code: settings, metrics, commands."""

import contextlib
import io
import os
from pathlib import Path
from unittest import mock

from hyperirl import cli
from hyperirl.cli.arguments import meanings
from hyperirl.cli.settings import GROUPS
from hyperirl.metrics import METRICS
from hyperirl.options import Options

_COMMANDS = (
    "learn resume evaluate report watch play export score sweep compare reproduce train"
).split()
_DEMOS = ("collect", "inspect", "convert")


def write(folder: Path) -> None:
    """Writes all pages into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "settings.md").write_text(settings())
    (folder / "metrics.md").write_text(metrics())
    (folder / "commands.md").write_text(commands())


def settings() -> str:
    """The settings of learning, in the groups of the command line."""
    words = meanings(Options)
    lines = [
        "# Settings",
        "",
        "`hi.learn(task, name=value)` or `hyperirl learn --name value`. What is not "
        "said follows from the task, its spaces and the method; `config.json` of a run "
        "says what that came to.",
    ]
    for group in GROUPS:
        lines += ["", f"## {group.name.capitalize()}", "", group.title, ""]
        lines += ["| setting | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(words[name])} |" for name in group.settings]
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """The numbers of a run's rows."""
    lines = [
        "# Metrics",
        "",
        "The numbers of `metrics.jsonl` and `result.metrics`, a row for each outer "
        "step, and what reports compute from them.",
        "",
        "| name | unit | meaning | better |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{m.name}` | {m.unit} | {_cell(f'{m.title}: {m.meaning}')} | "
        f"{m.better or ''} |"
        for m in METRICS.values()
    ]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command, as the command prints it."""
    lines = [
        "# Commands",
        "",
        "What `hyperirl COMMAND --help` prints. [](../install.md) says how a shell "
        "learns to complete commands and options.",
    ]
    named = [[name] for name in _COMMANDS] + [["demos", name] for name in _DEMOS]
    for words in named:
        title = f"## hyperirl {' '.join(words)}"
        lines += ["", title, "", "```text", _help(words), "```"]
    return "\n".join(lines) + "\n"


def _help(words: list[str]) -> str:
    """As in a terminal of 88 columns."""
    shown, width = io.StringIO(), mock.patch.dict(os.environ, COLUMNS="88")
    with width, contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        cli.parse([*words, "--help"])
    return "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
