"""Demonstrations as tables of CSV with named columns: one file, or a folder of them.

| column                     | what                                                   |
|----------------------------|--------------------------------------------------------|
| `observation_0`, `_1`, ... | what was seen before the action                        |
| `action`                   | the number of the choice; or `action_0`, `action_1`... |
| `episode`                  | any name; else every file is one episode               |
| `step`                     | the number of the step, optional                       |
| `reward`                   | the true one, optional                                 |
| `terminated`, `truncated`  | true or false, 1 or 0, optional                        |
| `expert_log_prob`          | of the action, optional                                |

A row without an action at the end of an episode holds what was seen after the last one.
"""

import csv
import dataclasses
import io
import re
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hyperirl.demos.demos import Demos
from hyperirl.demos.episodes import Episode, from_episodes
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flat import to_flat
from hyperirl.demos.provenance import Provenance
from hyperirl.demos.reading import check_size, refusing
from hyperirl.demos.writing import whole_file

SUFFIX = ".csv"
_FLAGS = {"true": 1.0, "false": 0.0}
_PLAIN = {
    "episode", "step", "action", "reward", "terminated", "truncated", "expert_log_prob"
}  # fmt: skip
_NUMBERED = re.compile(r"(observation|action)_(0|[1-9]\d{0,5})")
_PARQUET = b"PAR1"


def recognizes(path: Path) -> bool:
    """Whether it is a table, or a folder with tables."""
    if path.is_dir():
        return any(path.glob("*.csv"))
    with open(path, "rb") as file:
        start = file.read(4096)
    return path.suffix == SUFFIX or b"observation_0" in start or start[:4] == _PARQUET


def read(path: Path) -> Demos:
    """The demonstrations in a file of CSV, or in all those of a folder."""
    with refusing(path):
        files = sorted(path.glob("*.csv"), key=_in_order) if path.is_dir() else [path]
        check_size(sum(file.stat().st_size for file in files))
        tables = [_parse(file) for file in files]
        for file, table in zip(files, tables, strict=True):
            if set(table.columns) != set(tables[0].columns):
                raise DemosError(
                    f"{file.name} has other columns than {files[0].name}; give all "
                    "files the same."
                )
        episodes = [episode for table in tables for episode in table.episodes()]
        return from_episodes(episodes, Provenance(expert="read from CSV"))


def write(demos: Demos, path: Path) -> None:
    """Writes all of the file or, if that fails, nothing.

    The numbers are kept to the bit; who made them, and how, is not kept.
    """
    flat, text = to_flat(demos), io.StringIO(newline="")
    vectors = flat["actions"].ndim == 2
    actions = flat["actions"] if vectors else flat["actions"][:, None]
    names = [f"observation_{i}" for i in range(flat["observations"].shape[1])]
    names += [f"action_{i}" for i in range(actions.shape[1])] if vectors else ["action"]
    optional = {"rewards": "reward", "expert_log_probs": "expert_log_prob"}
    given = [flat[name] for name in optional if name in flat]
    names += [column for name, column in optional.items() if name in flat]
    writer = csv.writer(text)
    writer.writerow(["episode", "step", *names, "terminated", "truncated"])
    starts = np.cumsum(flat["lengths"]) - flat["lengths"]
    for episode, (start, steps) in enumerate(zip(starts, flat["lengths"], strict=True)):
        over = bool(flat["terminated"][episode])
        for step in range(steps + 1):
            # Nine digits tell any two numbers of 32 bits apart.
            seen = [f"{x:.9g}" for x in flat["observations"][start + episode + step]]
            if step == steps:
                empty = [""] * (len(names) - len(seen) + 2)
                writer.writerow([episode, step, *seen, *empty])
                continue
            done = [f"{x:.9g}" if vectors else x for x in actions[start + step]]
            known = [f"{column[start + step]:.9g}" for column in given]
            last = step == steps - 1
            ends = int(last and over), int(last and not over)
            writer.writerow([episode, step, *seen, *done, *known, *ends])
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


@dataclasses.dataclass(frozen=True, eq=False)
class _Table:
    """Numbers by column, NaN where there is none, and whose they are."""

    columns: dict[str, np.ndarray]
    labels: np.ndarray
    """The number of the episode of each row."""
    labeled: tuple[str, ...]
    """What the episodes are called."""

    def episodes(self) -> Iterator[Episode]:
        """Rows of the same name, which stand together."""
        cuts = np.flatnonzero(np.diff(self.labels)) + 1
        if len(cuts) + 1 != len(self.labeled):
            raise DemosError(
                "The rows of an episode do not stand together; sort the table by "
                "`episode` and `step`."
            )
        for rows in np.split(np.arange(len(self.labels)), cuts):
            part = {name: column[rows] for name, column in self.columns.items()}
            yield _episode(part, f"episode {self.labeled[self.labels[rows[0]]][:40]!r}")


def _parse(path: Path) -> _Table:
    with open(path, "rb") as file:
        if file.read(4) == _PARQUET:
            raise DemosError("It is Parquet, which is not read; write it as CSV.")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        header = [name.strip() for name in next(rows, [])]
        _check_header(header, path.name)
        label = header.index("episode") if "episode" in header else None
        numbers, labels, found = array("d"), array("q"), {}  # Far smaller than lists.
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise DemosError(
                    f"Line {rows.line_num} of {path.name} has {len(row)} entries, and "
                    f"there are {len(header)} columns; correct it."
                )
            name = "all" if label is None else row.pop(label).strip()
            labels.append(found.setdefault(name, len(found)))
            where = f"line {rows.line_num} of {path.name}"
            numbers.extend(_number(text, where) for text in row)
    if not labels:
        raise DemosError(f"{path.name} has no rows; give one for each step.")
    names = [name for name in header if name != "episode"]
    columns = np.asarray(numbers).reshape(len(labels), len(names)).T
    by_name = dict(zip(names, columns, strict=True))
    return _Table(by_name, np.asarray(labels), tuple(found))


def _check_header(header: list[str], name: str) -> None:
    numbered = {kind: [] for kind in ("observation", "action")}
    for column in header:
        match = _NUMBERED.fullmatch(column)
        if match:
            numbered[match[1]].append(int(match[2]))
        elif column not in _PLAIN:
            raise DemosError(
                f"{name} has an unknown column `{column[:40]}`; leave it out or "
                "correct its name: observation_0, ..., action or action_0, ..., "
                f"{', '.join(sorted(_PLAIN - {'action'}))}."
            )
    if len(set(header)) != len(header):
        raise DemosError(f"{name} has a column twice; leave one out.")
    for kind, found in numbered.items():
        if sorted(found) != list(range(len(found))):
            raise DemosError(
                f"The columns `{kind}_...` of {name} are not numbered 0, 1, 2, ...; "
                "correct their names."
            )
    if not numbered["observation"] or bool(numbered["action"]) == ("action" in header):
        raise DemosError(
            f"{name} needs columns `observation_0`, ... and either `action` (the "
            "number of a choice) or `action_0`, ... (a vector)."
        )


def _number(text: str, where: str) -> float:
    """NaN if there is nothing."""
    text = text.strip()
    try:
        return float(text) if text else np.nan
    except ValueError:
        if text.lower() in _FLAGS:
            return _FLAGS[text.lower()]
        raise DemosError(
            f"{text[:40]!r} in {where} is no number; correct it."
        ) from None


def _episode(columns: dict[str, np.ndarray], name: str) -> Episode:
    stacked = lambda kind: np.stack(
        [columns[key] for key in sorted(columns, key=_in_order) if kind in key], axis=1
    )
    discrete = "action" in columns
    actions = columns["action"][:, None] if discrete else stacked("action_")
    last = int(np.all(np.isnan(actions[-1])))  # Seen after the last action.
    steps = len(actions) - last
    optional = lambda key: columns[key][:steps] if key in columns else None
    if (numbers := columns.get("step")) is not None and np.any(np.diff(numbers) <= 0):
        raise DemosError(
            f"The steps of {name} are not in order; sort the table by `episode` and "
            "`step`, and give every episode a name of its own."
        )
    return Episode(
        observations=stacked("observation_"),
        actions=_choices(actions[:steps, 0], name) if discrete else actions[:steps],
        rewards=optional("reward"),
        terminated=_terminated(optional("terminated"), name),
        log_probs=optional("expert_log_prob"),
        steps=numbers,
    )


def _choices(numbers: np.ndarray, name: str) -> np.ndarray:
    if not np.all(np.isfinite(numbers)) or np.any(numbers != np.round(numbers)):
        raise DemosError(
            f"`action` of {name} is not always a whole number; a column of "
            "floating-point actions is called `action_0`."
        )
    return numbers.astype(np.int64)


def _terminated(flags: np.ndarray | None, name: str) -> bool | None:
    if flags is None or not len(flags):
        return None
    if not np.all((flags == 0) | (flags == 1)) or np.any(flags[:-1]):
        raise DemosError(
            f"`terminated` of {name} must be true or false, and true at its last "
            "action only; give every episode a name of its own in a column `episode`."
        )
    return bool(flags[-1])


def _in_order(key: Path | str) -> list[tuple[int, str]]:
    """Names with numbers in them, by number."""
    name = key if isinstance(key, str) else key.name
    return [
        (int(part), "") if part.isdigit() else (0, part)
        for part in re.split(r"(\d+)", name)
    ]
