"""The command `hyperirl`: one file a command, each parses, calls the library, prints.

A command is a frozen dataclass whose fields are its options and whose `run` does it.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Annotated

import tyro

from hyperirl._jax import enable_compilation_cache
from hyperirl.cli.compare import Compare
from hyperirl.cli.demos import Demos, Kind
from hyperirl.cli.evaluate import Evaluate
from hyperirl.cli.export import Export
from hyperirl.cli.helping import asks_for_help, fitted, listing, names
from hyperirl.cli.importing import import_modules
from hyperirl.cli.learn import Learn, Resume
from hyperirl.cli.play import Play
from hyperirl.cli.report import Report
from hyperirl.cli.reproduce import Reproduce
from hyperirl.cli.score import Score
from hyperirl.cli.stopping import INTERRUPTED
from hyperirl.cli.sweep import Sweep
from hyperirl.cli.train import Train
from hyperirl.cli.version import Version
from hyperirl.cli.watch import Watch

# What may follow `hyperirl`; the fields of a command become its options.
Command = (
    Annotated[Learn, tyro.conf.subcommand("learn")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Watch, tyro.conf.subcommand("watch")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Score, tyro.conf.subcommand("score")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Demos, tyro.conf.subcommand("demos")]
    | Annotated[Version, tyro.conf.subcommand("version")]
)

_OVERVIEW = """usage: hyperirl COMMAND [OPTIONS]

Learn reward functions from demonstrations.

{}

`hyperirl COMMAND --help` lists the options of a command.

Two options may stand anywhere:
  --quiet          Print nothing unless the command fails.
  --import MODULE  First import a module that registers environments with Gymnasium.

For example:
    hyperirl learn
    hyperirl evaluate latest
    hyperirl report latest"""

_OVERVIEW_OF_DEMOS = """usage: hyperirl demos COMMAND [OPTIONS]

Collect demonstrations, look at them, or convert them.

{}

`hyperirl demos COMMAND --help` lists the options of a command.

For example:
    hyperirl demos inspect cartpole"""

_WELCOME = """hyperirl learns reward functions from demonstrations.

  hyperirl learn
      A reward for CartPole, from bundled demonstrations.
  hyperirl report latest
      What was learned, as one HTML file.
  hyperirl learn --env MODULE:NAME --demos FILE
      A reward for your own task.

All commands:             hyperirl --help
The options of a command: hyperirl learn --help"""


def main(args: Sequence[str] | None = None) -> None:
    """Runs a command; exits with 2 and one sentence when it is given something bad.

    Set `HYPERIRL_TRACEBACK=1` to see where the sentence comes from. When whoever reads
    the output has seen enough, as in `hyperirl ... | head`, it ends without a word.
    """
    try:
        _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None  # As if by SIGPIPE.
    except KeyboardInterrupt:
        print("hyperirl: interrupted.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _run(args: Sequence[str] | None) -> None:
    args = list(sys.argv[1:] if args is None else args)
    if args == ["--version"]:
        print(f"hyperirl {metadata.version('hyperirl')}")
        return
    quiet = "--quiet" in args
    args = import_modules([word for word in args if word != "--quiet"])
    if not args:
        print(_WELCOME)
        return
    for words, overview, commands in (
        ([], _OVERVIEW, Command),
        (["demos"], _OVERVIEW_OF_DEMOS, Kind),
    ):
        if args in ([*words, "--help"], [*words, "-h"]):
            with fitted():
                print(overview.format(listing(names(commands))))
            return
    command = parse(args)
    enable_compilation_cache()
    try:
        with _plain_warnings(), _silence() if quiet else contextlib.nullcontext():
            command.run()
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        if os.environ.get("HYPERIRL_TRACEBACK"):
            raise
        print(f"hyperirl: {_sentence(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _sentence(error: Exception) -> str:
    """What went wrong, without the system's number for it."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror}."


def parse(args: Sequence[str]) -> Command:
    """The command that some words stand for; prints help and exits if asked to."""
    with fitted() if asks_for_help(args) else contextlib.nullcontext():
        return tyro.cli(Command, prog="hyperirl", args=args)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing is printed meanwhile; errors are raised, and printed later."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings are sentences meanwhile, without the place they come from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_: f"hyperirl: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
