"""Who made the demonstrations, and how."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from hyperirl.demos.errors import DemosError

FORMAT_VERSION = 1
MISSING = ("last observations", "terminations", "steps")


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where demonstrations come from. `None` stands for "not known"."""

    environment: str | None = None
    """Name of the task, as in `hyperirl.tasks.names`, or of somebody's own."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options the environment was made with: plain numbers, strings and lists."""
    horizon: int | None = None
    """Where episodes were cut."""
    temperature: float | None = None
    """The expert's `alpha`."""
    discount: float | None = None
    """The expert's `gamma`."""
    expert: str | None = None
    """How the expert was made, in a few words."""
    report: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What the solver that made the expert said about it."""
    seed: int | None = None
    """Decides the expert's training and the episodes."""
    hyperirl_version: str | None = None
    """The version that wrote the demonstrations."""
    missing: tuple[str, ...] = ()
    """What was not recorded and had to be made up: any of `MISSING`."""

    def __post_init__(self):
        self._check_range("horizon", lambda value: value > 0, "positive")
        self._check_range("temperature", lambda value: value > 0, "positive")
        self._check_range("discount", lambda value: 0 < value <= 1, "in (0, 1]")
        if unknown := [name for name in self.missing if name not in MISSING]:
            raise DemosError(
                f"`missing` of demonstrations names {_short(unknown[0])}; it may name "
                f"{', '.join(MISSING)}."
            )

    def _check_range(self, name: str, allowed: Callable, words: str) -> None:
        value = getattr(self, name)
        if value is not None and not (math.isfinite(value) and allowed(value)):
            raise DemosError(
                f"`{name}` of demonstrations is {value}, which is not {words}; correct "
                "it, or leave it out if it is not known."
            )

    def to_json(self) -> str:
        """All fields and the version of the format, the same text every time."""
        fields = dataclasses.asdict(self) | {"format_version": FORMAT_VERSION}
        if not self.missing:  # So that most files can be read by older versions.
            del fields["missing"]
        try:
            return json.dumps(fields, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DemosError(
                "What is recorded about demonstrations must be plain finite numbers, "
                f"strings, lists and dictionaries ({error}); convert arrays with "
                "`.tolist()`."
            ) from error

    @classmethod
    def from_json(cls, text: str) -> "Provenance":
        """Reads what `to_json` wrote; `DemosError` if it is anything else."""
        try:
            fields = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DemosError(
                f"The metadata is not JSON ({error}); write the file again with "
                "`hyperirl.demos.save`."
            ) from error
        if not isinstance(fields, dict) or "format_version" not in fields:
            raise DemosError(
                "The metadata does not say its `format_version`; write the file with "
                f'`hyperirl.demos.save`, or add {{"format_version": {FORMAT_VERSION}}}.'
            )
        version = fields.pop("format_version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise DemosError(
                f"The file has format version {_short(version)}, and this hyperirl "
                f"reads version {FORMAT_VERSION}; install the hyperirl that wrote it, "
                "or collect the demonstrations again."
            )
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(fields) - known):
            raise DemosError(
                f"The metadata has unknown entries {_short(unknown)}; allowed are "
                f"{', '.join(sorted(known))}."
            )
        return cls(**{name: _checked(name, value) for name, value in fields.items()})


_KINDS = {
    "environment": str,
    "options": dict,
    "horizon": int,
    "temperature": float,
    "discount": float,
    "expert": str,
    "report": dict,
    "seed": int,
    "hyperirl_version": str,
    "missing": list,
}
_WORDS = {
    str: "text",
    dict: "a dictionary",
    list: "a list",
    int: "a whole number",
    float: "a number",
}


def _checked(name: str, value: object) -> Any:
    """The value of a field, if it has the right type; a collection is never null."""
    kind = _KINDS[name]
    if kind is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is kind or (value is None and kind not in (dict, list)):
        return tuple(value) if isinstance(value, list) else value
    raise DemosError(
        f"`{name}` in the metadata is {_short(value)}, which is not {_WORDS[kind]}; "
        "correct it, or leave it out if it is not known."
    )


def _refuse_constant(name: str):
    raise ValueError(f"{name} is not a JSON number")


def _short(value: object) -> str:
    """The value as text, cut: a file may hold anything."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
