"""The settings of learning, in groups: what most people want first."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from hyperirl import options
from hyperirl.cli.arguments import meanings
from hyperirl.options import Options


@dataclasses.dataclass(frozen=True)
class Group:
    """Settings that belong together.

    Attributes:
        name: One word.
        title: A sentence about all of them.
        settings: Their names, as in `Options`.
        basic: Whether most people want them.
    """

    name: str
    title: str
    settings: tuple[str, ...]
    basic: bool = False


GROUPS: tuple[Group, ...] = (
    Group(
        "basic",
        "How long, how, and with which random numbers.",
        (
            "method",
            "steps",
            "time",
            "until_settled",
            "seed",
            "temperature",
            "discount",
        ),
        basic=True,
    ),
    Group(
        "reward",
        "Advanced: the function that is learned.",
        ("reward", "reward_hidden", "reward_clamp"),
    ),
    Group(
        "policy",
        "Advanced: the network of the policy.",
        ("policy_hidden", "normalize", "squash"),
    ),
    Group(
        "inner",
        "Advanced: how the policy follows the reward.",
        (
            "inner",
            "inner_updates",
            "average",
            "challenge_every",
            "demo_starts",
            "lost_starts",
            "adaptive",
        ),
    ),
    Group(
        "hypergradient",
        "Advanced: the estimate of the reward's gradient.",
        ("agent_episodes", "expected_fisher", "cross", "critic_units"),
    ),
    Group(
        "curvature",
        "Advanced: who solves (Fisher + damping) v = g, and how.",
        ("solver", "damping", "damping_scale", "sketch_size"),
    ),
    Group(
        "step",
        "Advanced: how far the reward moves in an outer step.",
        (
            "natural",
            "trust_region",
            "step_kl",
            "optimizer",
            "learning_rate",
            "schedule",
            "clip",
        ),
    ),
    Group(
        "data",
        "Advanced: how the demonstrations are cut and dealt out.",
        ("segment", "test_seed"),
    ),
)


def metavar(name: str) -> str:
    """What may stand after a setting in the command line."""
    (kind,) = options.kinds(name)
    if get_origin(kind) is Literal:
        return "{" + ",".join(get_args(kind)) + "}"
    if get_origin(kind) is tuple:
        return "SIZE [SIZE ...]"
    return {int: "INT", float: "NUMBER", str: "NAME"}.get(kind, "")


def _structure(group: Group, words: Mapping[str, str]) -> type:
    """A dataclass for the parser, whose fields are the group's settings."""
    fields: list[tuple[str, Any, Any]] = []
    for name in group.settings:
        (kind,) = options.kinds(name)
        said = tyro.conf.arg(
            help=words[name],
            help_behavior_hint="",
            metavar=metavar(name) or None,
        )
        hint = tyro.conf.DisallowNone[Annotated[kind | None, said]]
        fields.append((name, hint, dataclasses.field(default=None)))
    return dataclasses.make_dataclass(
        group.name, fields, frozen=True, namespace={"__doc__": group.title}
    )


def _collect(**groups: Any) -> Options:
    """What was said in any group."""
    said = {k: v for group in groups.values() for k, v in vars(group).items()}
    return Options(**said)


def _parser() -> Any:
    words = meanings(Options)
    structures = {group.name: _structure(group, words) for group in GROUPS}
    _collect.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=made(), annotation=made
            )
            for name, made in structures.items()
        ]
    )
    _collect.__annotations__ = {**structures, "return": Options}
    return _collect


# Options as the command line reads them: every setting is an option of its own.
Settings = Annotated[
    tyro.conf.OmitArgPrefixes[Options],
    tyro.conf.arg(constructor_factory=_parser, name=""),
]
