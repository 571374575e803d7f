"""Documents against types: what fits becomes it, what does not is named."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from hyperirl.runs import RunError, as_dataclass
from hyperirl.runs.checked import words
from hyperirl.runs.documents import MAX_DEPTH, parse, read


@dataclasses.dataclass(frozen=True)
class Inner:
    size: int


@dataclasses.dataclass(frozen=True)
class Settings:
    name: str
    rate: float = 0.1
    count: int | None = None
    sizes: tuple[int, ...] = ()
    pair: tuple[int, str] = (0, "")
    mode: Literal["fast", "slow"] = "fast"
    shown: bool = True
    folder: Path | None = None
    options: Mapping[str, float] = dataclasses.field(default_factory=dict)
    words: list[str] = dataclasses.field(default_factory=list)
    inner: Inner | None = None
    either: int | float | str = 0
    rest: Any = None


FULL = {
    "name": "first",
    "rate": 1,
    "count": None,
    "sizes": [32, 32],
    "pair": [3, "x"],
    "mode": "slow",
    "shown": False,
    "folder": "runs/first",
    "options": {"gravity": 9},
    "words": ["a"],
    "inner": {"size": 3},
    "either": 4,
    "rest": [1, {}],
}


def test_a_document_becomes_the_dataclass():
    made = as_dataclass(Settings, FULL, "here")
    assert made == Settings(
        "first",
        1.0,
        None,
        (32, 32),
        (3, "x"),
        "slow",
        False,
        Path("runs/first"),
        {"gravity": 9.0},
        ["a"],
        Inner(3),
        4,
        [1, {}],
    )
    assert type(made.rate) is float and type(made.either) is int


def test_what_has_a_default_may_be_missing():
    assert as_dataclass(Settings, {"name": "x"}, "here") == Settings("x")
    with pytest.raises(RunError, match="here lacks the field `name`"):
        as_dataclass(Settings, {}, "here")
    with pytest.raises(RunError, match="here lacks the field `rate`"):
        as_dataclass(Settings, {"name": "x"}, "here", whole=True)


@pytest.mark.parametrize(
    "field, value, expected",
    [
        ("name", 1, "text"),
        ("name", None, "text"),
        ("rate", "x", "a number"),
        ("rate", {}, "a number"),
        ("rate", True, "a number"),
        ("rate", float("nan"), "a number"),
        ("count", 1.5, "a whole number or null"),
        ("count", True, "a whole number or null"),
        ("sizes", 32, "a list"),
        ("sizes", [32, "x"], "a list"),
        ("pair", [3], "2 values"),
        ("mode", "quick", "one of fast, slow"),
        ("mode", [], "one of fast, slow"),
        ("shown", 1, "true or false"),
        ("options", {"gravity": "x"}, "named values"),
        ("options", [], "named values"),
        ("words", "abc", "a list"),
        ("inner", [], "named values or null"),
        ("either", None, "a whole number or a number or text"),
    ],
)
def test_a_wrong_type_is_named(field, value, expected):
    with pytest.raises(RunError) as caught:
        as_dataclass(Settings, FULL | {field: value}, "config.json")
    said = str(caught.value)
    assert f"`{field}` in config.json is " in said
    assert f"which is not {expected};" in said and "\n" not in said


def test_inner_fields_are_checked_too():
    with pytest.raises(RunError, match="`size` in `inner` in here is 'x'"):
        as_dataclass(Settings, FULL | {"inner": {"size": "x"}}, "here")
    with pytest.raises(RunError, match="`inner` in here has an unknown field 'depth'"):
        as_dataclass(Settings, FULL | {"inner": {"depth": 1}}, "here")


def test_unknown_fields_are_refused():
    with pytest.raises(RunError, match="an unknown field 'speed'.*another version"):
        as_dataclass(Settings, FULL | {"speed": 1}, "here")


def test_unions_are_in_words():
    assert words(int | None) == "a whole number or null"


def test_documents_are_shallow():
    nested = lambda depth: parse("[" * depth + "]" * depth)
    nested(MAX_DEPTH)
    with pytest.raises(ValueError, match="nested more than"):
        nested(MAX_DEPTH + 2)
    with pytest.raises(ValueError, match="nested too deep"):
        nested(10**5)
    with pytest.raises(ValueError, match="nested more than"):
        parse('{"a":' * 50 + "1" + "}" * 50)


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-Infinity", "1e999", "9" * 30, '"\\ud800"', b"\xff"]
)
def test_what_nobody_can_compute_with_is_refused(text):
    with pytest.raises(ValueError):
        parse(text)


def test_the_largest_numbers_are_read():
    limit = 2**63
    assert parse(f"[{limit - 1}, {-limit}, 1e308]") == [limit - 1, -limit, 1e308]
    with pytest.raises(ValueError, match="too large"):
        parse(str(limit))


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    (tmp_path / "a.json").write_text("[" + "1," * 50 + "1]")
    assert len(read(tmp_path / "a.json")) == 51
    with pytest.raises(RunError, match="has 103 bytes, and at most 100 are read"):
        read(tmp_path / "a.json", max_bytes=100)
    with pytest.raises(RunError, match="not a file"):
        read(tmp_path)
