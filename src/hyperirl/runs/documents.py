"""JSON that may come from anybody: small, shallow, and of numbers a float can hold.

What is read here can be compared, computed with, nested into other documents and
written again without another look: there is no NaN in it, no integer of a thousand
digits, no text that is not Unicode, and no nesting that exhausts the stack.
"""

import json
import math
from pathlib import Path
from typing import Any

from hyperirl.runs.errors import RunError

MAX_BYTES = 2**24
MAX_DEPTH = 32
_MAX_INTEGER = 2**63


def parse(text: str | bytes) -> Any:
    """The values in a text; a `ValueError` says why not, as a part of a sentence."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _check(value)
    return value


def read(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """What a file holds."""
    text = read_bytes(path, max_bytes)
    try:
        return parse(text)
    except ValueError as error:
        raise RunError(
            f"{path} is not JSON that can be used ({error}); restore it, or remove it "
            "if it is not needed."
        ) from error


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file that is not too large to be what it should be."""
    check_size(path, max_bytes)
    return path.read_bytes()


def check_size(path: Path, max_bytes: int) -> None:
    """Refuses a file that is too large to be what it should be."""
    if not path.is_file():
        raise RunError(f"{path} is not a file; remove it.")
    if (size := path.stat().st_size) > max_bytes:
        raise RunError(
            f"{path} has {size} bytes, and at most {max_bytes} are read; restore it."
        )


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check(document: Any) -> None:
    """Looks at every value, and not by recursion: it may be nested any deep."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif isinstance(value, str):
            value.encode()  # A lone surrogate is a `ValueError`.
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("a number in it is too large")
        elif isinstance(value, int) and not -_MAX_INTEGER <= value < _MAX_INTEGER:
            raise ValueError("a whole number in it is too large")
