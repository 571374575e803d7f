"""A run in a folder: config, provenance, metrics, checkpoint, results.

Everything but `metrics.jsonl` is replaced in one piece; that file grows by whole lines,
and a line torn by a kill is dropped. So a folder can be read at any moment, also after
its writer was killed.
"""

import contextlib
import dataclasses
import errno
import itertools
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PyTree

from hyperirl.runs import atomic, documents
from hyperirl.runs.arrays import load_arrays, load_metadata, save_arrays
from hyperirl.runs.checked import check_fields, mapping
from hyperirl.runs.errors import RunError
from hyperirl.runs.provenance import FIELDS, provenance

FORMAT_VERSION = 1
_MAX_METRICS_BYTES = 2**28
_NUMBERS = (int, float, bool, type(None))


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """One run on disk. It has one writer at a time, and any number of readers.

    ```
    run = RunFolder.create("runs/first", {"env": "lqr", "seed": 0}, sys.argv)
    run.append_metrics({"step": 1, "outer_loss": 3.5})
    run.save_checkpoint(state, step=1)
    ```
    """

    path: Path
    config: dict[str, Any]
    provenance: dict[str, Any]

    @classmethod
    def create(
        cls, path: str | Path, config: Mapping[str, Any], command: Sequence[str]
    ) -> "RunFolder":
        """Makes the folder, which must not hold anything yet.

        Args:
            path: Of the folder; those above it are made too.
            config: All that decides the run, as plain values.
            command: What was typed, word by word, to be able to repeat it.
        """
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"{path} already exists, and a run is never overwritten; choose "
                "another folder, or continue that run with `hyperirl resume`."
            )
        try:
            config_text = _encode(config, keep=True)
        except (TypeError, ValueError) as error:
            raise RunError(
                "The config of a run must be plain finite numbers, strings, lists and "
                f"dictionaries ({error}); write None for what is not limited."
            ) from error
        about = provenance(command) | {"format_version": FORMAT_VERSION}
        path.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path / "provenance.json", _encode(about).encode())
        # Last: a folder is a run folder as soon as it has a config.
        atomic.write_bytes(path / "config.json", config_text.encode())
        return cls(path, json.loads(config_text), about)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """A run that was created before."""
        path = Path(path)
        if not path.is_dir():
            reason = "is not a folder" if path.exists() else "does not exist"
            raise RunError(f"{path} {reason}; give the folder of a run.")
        parts = []
        for name in ("config.json", "provenance.json"):
            part = _read_mapping(path / name)
            if part is None:
                raise RunError(
                    f"{path} is not the folder of a run, for it has no {name}; give "
                    "the one that `hyperirl learn` printed."
                )
            parts.append(part)
        check_fields(parts[1], FIELDS, path / "provenance.json")
        version = parts[1].get("format_version")
        if type(version) is not int or version != FORMAT_VERSION:
            raise RunError(
                f"{path} has version {str(version)[:20]} of the format of run folders, "
                f"and this hyperirl reads version {FORMAT_VERSION}; install the "
                "hyperirl that wrote it."
            )
        return cls(path, *parts)

    @property
    def reward_path(self) -> Path:
        """The learned reward."""
        return self.path / "reward.npz"

    @property
    def policy_path(self) -> Path:
        """The policy that goes with it."""
        return self.path / "policy.npz"

    @property
    def report_path(self) -> Path:
        """The report on this run alone."""
        return self.path / "report.html"

    @property
    def _metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def _checkpoint_path(self) -> Path:
        return self.path / "checkpoint.npz"

    @property
    def _previous_path(self) -> Path:
        return self.path / "checkpoint.previous.npz"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Refuses to be a second writer; a killed writer lets go by itself."""
        import fcntl  # Not on every system; readers do not need it.

        with open(self.path / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunError(
                    f"Another process is working on {self.path}; wait for it, or stop "
                    "it first."
                ) from error
            yield

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Adds a line; NaN and infinity become null. An error names the file."""
        line = (json.dumps(_plain(row), allow_nan=False) + "\n").encode()
        try:
            with open(self._metrics_path, "ab+", buffering=0) as file:
                _drop_torn_line(file)
                if file.write(line) < len(line):  # One call, so that lines stay whole.
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            error.filename = str(self._metrics_path)
            raise

    def metrics(self) -> list[dict[str, Any]]:
        """All rows, without the last line if a kill tore it."""
        return list(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The same, one after the other: a long run has more than should be held."""
        for number, line in enumerate(self._lines(), 1):
            where = f"line {number} of {self._metrics_path}"
            try:
                row = documents.parse(line)
            except ValueError as error:
                raise RunError(
                    f"L{where[1:]} is not JSON that can be used ({error}); delete that "
                    "line to go on without it."
                ) from error
            _check_row(row, where)
            yield row

    def truncate_metrics(self, step: int) -> None:
        """Drops the rows of later steps: those after the last checkpoint."""
        keeps = [row["step"] <= step for row in self.rows()]
        if not all(keeps):
            kept = itertools.compress(self._lines(), keeps)
            atomic.write_bytes(self._metrics_path, b"".join(kept))

    def _lines(self) -> Iterator[bytes]:
        """The whole lines of the metrics."""
        if not self._metrics_path.exists():
            return
        documents.check_size(self._metrics_path, _MAX_METRICS_BYTES)
        with open(self._metrics_path, "rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))

    def save_checkpoint(self, state: PyTree, step: int) -> None:
        """Replaces the checkpoint: at every moment there is the old or the new one.

        The one before is kept beside it, in case the new one is damaged later.
        """
        for path in (self._checkpoint_path, self._previous_path):
            atomic.remove_leftovers(path)
        atomic.keep(self._checkpoint_path, self._previous_path)
        save_arrays(self._checkpoint_path, state, {"step": int(step)})

    def load_checkpoint(self, like: PyTree) -> tuple[PyTree, int] | None:
        """The newest state and its step; `None` if none was saved.

        If it is damaged, and the one before is not, that one takes its place, with a
        warning. For the only writer of the folder.

        Args:
            like: A state of the same structure, whose arrays are replaced.
        """
        if not self._checkpoint_path.exists():
            return None
        try:
            return _read_checkpoint(self._checkpoint_path, like)
        except ValueError as error:
            try:
                state, step = _read_checkpoint(self._previous_path, like)
            except ValueError:  # There is none, or both are of another run.
                raise error from None
            os.replace(self._previous_path, self._checkpoint_path)
            warnings.warn(
                f"The checkpoint cannot be used ({error}) The run goes on from the one "
                f"before, of step {step}.",
                stacklevel=2,
            )
            return state, step

    def save_json(self, name: str, value: Any) -> None:
        """Writes a file such as `evaluation.json`; NaN and infinity become null."""
        atomic.write_bytes(self.path / name, _encode(value).encode())

    def load_json(self, name: str) -> dict[str, Any] | None:
        """What such a file holds; `None` if there is none."""
        return _read_mapping(self.path / name)


def _read_checkpoint(path: Path, like: PyTree) -> tuple[PyTree, int]:
    step = load_metadata(path).get("step")
    if type(step) is not int or not 0 <= step < 2**63:
        raise RunError(
            f"{path} does not say its step, so it is not a checkpoint; remove it to "
            "start the run again."
        )
    return load_arrays(path, like), step


def _read_mapping(path: Path) -> dict[str, Any] | None:
    return mapping(documents.read(path), path) if path.exists() else None


def _check_row(row: Any, where: str) -> None:
    """A row is numbers by name, and says its step."""
    for name, value in mapping(row, where).items():
        if type(value) not in _NUMBERS:
            raise RunError(
                f"`{name[:60]}` in {where} is {str(value)[:60]}, which is no number; "
                "delete that line to go on without it."
            )
    step = row.get("step")
    if type(step) is not int or step < 0:
        raise RunError(
            f"`step` in {where} is {step}, which is not a whole number from 0 on; "
            "delete that line to go on without it."
        )


def _encode(value: Any, *, keep: bool = False) -> str:
    """Indented JSON; NaN and infinity become null, or with `keep` are refused."""
    return json.dumps(_plain(value, keep=keep), indent=2, allow_nan=False) + "\n"


def _plain(value: Any, *, keep: bool = False) -> Any:
    """NumPy and JAX values as Python's; without `keep`, None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item, keep=keep) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, keep=keep) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "__array__"):
        return _plain(np.asarray(value).tolist(), keep=keep)
    if isinstance(value, float) and not keep and not math.isfinite(value):
        return None
    return value


def _drop_torn_line(file) -> None:
    """Cuts what follows the last line break: a line that a kill tore."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
