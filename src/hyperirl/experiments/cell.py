"""A cell: the unit of work of an experiment, and its one result file."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperirl.runs import atomic

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Cell:
    """What to do, as plain values: equal cells are the same work.

    ```
    Cell("damping", "hyperirl.experiments.learn", {"config": {"env": "lqr"}})
    ```
    """

    experiment: str
    """Whose work it is: the folder that the result is kept in."""
    kind: str
    """The module whose `run(settings, folder)` does the work and returns the result."""
    settings: Mapping[str, Any]
    """All that decides the result, as JSON knows it, seed included."""

    @property
    def id(self) -> str:
        """Readable, and different for different settings."""
        text = json.dumps([self.kind, self.settings], sort_keys=True, allow_nan=False)
        short = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{_slug(self.settings)}-{short}"

    def result_path(self, out: Path) -> Path:
        """The file that is there if, and only if, the cell is finished."""
        return out / self.experiment / "cells" / f"{self.id}.json"

    def work_folder(self, out: Path) -> Path:
        """Where the work may keep what it needs to go on after a crash."""
        return out / self.experiment / "runs" / self.id

    def log_path(self, out: Path) -> Path:
        """What the process that does the work prints."""
        return out / self.experiment / "logs" / f"{self.id}.log"

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        """Reads what `to_json` wrote."""
        return cls(**json.loads(text))

    def load(self, out: Path) -> Result | None:
        """The result; `None` if the cell is not finished."""
        path = self.result_path(out)
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text())["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} is not the result of a cell ({error}); delete it to have the "
                "cell run again."
            ) from error

    def save(self, out: Path, result: Result) -> None:
        """In one piece: a kill leaves no half of a result."""
        path = self.result_path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {"cell": dataclasses.asdict(self), "result": result},
            indent=1,
            allow_nan=False,
        )
        atomic.write_bytes(path, text.encode())


def _slug(settings: Mapping[str, Any], limit: int = 60) -> str:
    """The values that tell most, joined; only letters, digits and dashes."""
    words = []
    for value in settings.values():
        inner = value.values() if isinstance(value, Mapping) else [value]
        words += [str(v) for v in inner if type(v) in (str, int, float)]
    text = re.sub(r"[^a-zA-Z0-9.]+", "-", "-".join(words)).strip("-.")
    return text[:limit].rstrip("-.") or "cell"


def finished(cells: Sequence[Cell], out: Path) -> dict[str, Result]:
    """The results that are there, by the ids of the cells."""
    results = {cell.id: cell.load(out) for cell in cells}
    return {id: result for id, result in results.items() if result is not None}
