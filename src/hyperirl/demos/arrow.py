"""Columns of an Arrow table, as NumPy arrays; text in it is never looked at.

A stream of Arrow is a list of messages: what the columns are, then batches of rows.
A batch has a list of buffers, in the order of the columns and of what is within them.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hyperirl.demos import reading
from hyperirl.demos.errors import DemosError
from hyperirl.demos.flatbuffer import Table, unpack

# A file of Arrow is a stream of Arrow after this, with an index after its end.
_FILE_START = b"ARROW1\0\0"
_MARK = 0xFFFFFFFF
_SCHEMA, _BATCH = 1, 3
_MAX_DEPTH, _MAX_FIELDS = 16, 10_000

# Arrow's numbers for the types of columns, and how many buffers each has.
_INT, _FLOAT, _BOOL, _VECTOR = 2, 3, 6, 16
_LISTS = {12: np.dtype("<i4"), 21: np.dtype("<i8")}
_NUM_BUFFERS = {1: 0, _INT: 2, _FLOAT: 2, 4: 3, 5: 3, _BOOL: 2, 7: 2, 8: 2, 9: 2, 10: 2}
_NUM_BUFFERS |= {
    11: 2,
    12: 2,
    13: 1,
    15: 2,
    _VECTOR: 1,
    17: 2,
    18: 2,
    19: 3,
    20: 3,
    21: 2,
}
_DAMAGED = "It is damaged or incomplete; copy it again."


def read_columns(path: Path, names: tuple[str, ...]) -> dict[str, list]:
    """The named columns that are there, each as a list of its rows.

    A row of a column of lists is an array, and its lists are of one length; those of
    different rows may differ.
    """
    if not path.is_file():
        raise DemosError(f"There is no file {path.name}; copy the whole folder again.")
    reading.check_size(path.stat().st_size)
    data = path.read_bytes().removeprefix(_FILE_START)
    fields, columns = None, {}
    for kind, header, body in _messages(data):
        if kind == _SCHEMA:
            if header.number(0, "<h"):
                raise DemosError(
                    "Its numbers are big-endian; write it on this machine."
                )
            left = iter(range(_MAX_FIELDS))
            fields = [_field(field, left) for field in header.tables(1)]
        elif kind == _BATCH and fields is not None:
            for column in _batch(fields, header, body):
                if column.field.name in names:
                    columns.setdefault(column.field.name, []).extend(column.rows())
        else:
            raise DemosError("It holds no plain table; write one without dictionaries.")
    return columns


def _messages(data: bytes) -> Iterator[tuple[int, Table, bytes]]:
    """The kind, the header and the body of each message."""
    place = 0
    while place < len(data):
        size = unpack(data, "<I", place + 4)
        if unpack(data, "<I", place) != _MARK:
            raise DemosError(_DAMAGED)
        if not size:
            return
        body = place + 8 + size
        message = Table.root(data[place + 8 : body])
        header, length = message.table(2), message.number(3, "<q")
        if header is None or length < 0 or body + length > len(data):
            raise DemosError(_DAMAGED)
        yield message.number(1, "<B"), header, data[body : body + length]
        place = body + length


@dataclasses.dataclass(frozen=True)
class _Field:
    """What a column is, and what is within it."""

    name: str
    kind: int
    details: Table
    children: "tuple[_Field, ...]"


def _field(table: Table, left: Iterator[int], depth: int = 0) -> _Field:
    """What a table says; a small one could list the same parts again and again."""
    if next(left, None) is None:
        raise DemosError(f"It has more than {_MAX_FIELDS} columns; leave some out.")
    name, kind, details = table.text(0), table.number(2, "<B"), table.table(3)
    if depth > _MAX_DEPTH or details is None:
        raise DemosError(_DAMAGED)
    if kind not in _NUM_BUFFERS or table.table(4) is not None:
        raise DemosError(
            f"`{name[:40]}` is of a type that is not read; write plain numbers."
        )
    children = tuple(_field(child, left, depth + 1) for child in table.tables(5))
    return _Field(name, kind, details, children)


@dataclasses.dataclass(frozen=True)
class _Column:
    """The part of a batch that belongs to a field; not looked at unless needed."""

    field: _Field
    body: bytes
    length: int
    empty: int
    buffers: tuple[tuple[int, int], ...]
    children: "tuple[_Column, ...]"

    def rows(self) -> list:
        """An array, or a number, for each row."""
        if self.field.kind not in _LISTS:
            return list(self.array())
        bounds, values = self._lists()
        ends = zip(bounds[:-1], bounds[1:], strict=True)
        return [values[start:end] for start, end in ends]

    def array(self) -> np.ndarray:
        """One array: lists within it are of the same length."""
        self._check_complete()
        if self.field.kind in _LISTS:
            bounds, values = self._lists()
            widths = np.diff(bounds)
            if np.any(widths != widths[:1]):
                raise DemosError(
                    f"The rows of `{self.field.name}` differ in length; all must have "
                    "the same number of numbers."
                )
            width = int(widths[0]) if len(widths) else 0
            return self._shaped(values[bounds[0] : bounds[-1]], width)
        if self.field.kind == _VECTOR:
            return self._shaped(self._child(), self.field.details.number(0, "<i"))
        if self.field.kind == _BOOL:
            packed = self._buffer(1, np.dtype(np.uint8), -(-self.length // 8))
            bits = np.unpackbits(packed, count=self.length, bitorder="little")
            return bits.astype(bool)
        return self._buffer(1, self._dtype(), self.length)

    def _lists(self) -> tuple[np.ndarray, np.ndarray]:
        """Where lists start, the end of the last one, and what is in them."""
        self._check_complete()
        values = self._child()
        bounds = self._buffer(1, _LISTS[self.field.kind], self.length + 1)
        if np.any(np.diff(bounds) < 0) or bounds[0] < 0 or bounds[-1] > len(values):
            raise DemosError(_DAMAGED)
        return bounds.astype(np.int64), values

    def _child(self) -> np.ndarray:
        if len(self.children) != 1:
            raise DemosError(_DAMAGED)
        return self.children[0].array()

    def _shaped(self, values: np.ndarray, width: int) -> np.ndarray:
        if width < 0 or len(values) != self.length * width:
            raise DemosError(_DAMAGED)
        return values.reshape(self.length, width, *values.shape[1:])

    def _dtype(self) -> np.dtype:
        details = self.field.details
        if self.field.kind == _FLOAT and 0 <= (size := details.number(0, "<h")) < 3:
            return np.dtype(("<f2", "<f4", "<f8")[size])
        bits, signed = details.number(0, "<i"), details.number(1, "<B")
        if self.field.kind == _INT and bits in (8, 16, 32, 64):
            return np.dtype(f"<{'i' if signed else 'u'}{bits // 8}")
        raise DemosError(
            f"`{self.field.name[:40]}` does not hold numbers; give the file that does."
        )

    def _buffer(self, number: int, dtype: np.dtype, length: int) -> np.ndarray:
        start, size = self.buffers[number]
        fits = 0 <= start <= start + size <= len(self.body)
        if not fits or size < length * dtype.itemsize:
            raise DemosError(_DAMAGED)
        return np.frombuffer(self.body, dtype, length, start)

    def _check_complete(self) -> None:
        if self.empty:
            raise DemosError(
                f"`{self.field.name[:40]}` has empty entries; fill them in or leave "
                "those episodes out."
            )


def _batch(fields: list[_Field], header: Table, body: bytes) -> list[_Column]:
    """Deals the buffers of a batch out to its columns."""
    if header.table(3) is not None:
        raise DemosError("It is compressed, which is not read; write it plainly.")
    nodes, buffers = iter(header.pairs(1)), iter(header.pairs(2))

    def take(field: _Field) -> _Column:
        length, empty = next(nodes, (-1, 0))
        own = tuple(itertools.islice(buffers, _NUM_BUFFERS[field.kind]))
        if not 0 <= length <= reading.MAX_BYTES or len(own) < _NUM_BUFFERS[field.kind]:
            raise DemosError(_DAMAGED)
        children = tuple(take(child) for child in field.children)
        return _Column(field, body, length, empty, own, children)

    return [take(field) for field in fields]
