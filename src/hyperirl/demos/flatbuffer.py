"""Tables of FlatBuffers, in which Arrow says what its columns are.

Every place is checked before it is looked at: libraries in C crash on damaged ones.
"""

import dataclasses
import struct

from hyperirl.demos.errors import DemosError

_BROKEN = "What it says about its columns is damaged; copy it again."


def unpack(data: bytes, form: str, place: int) -> int:
    """A whole number at a place."""
    if place < 0 or place + struct.calcsize(form) > len(data):
        raise DemosError(_BROKEN)
    return struct.unpack_from(form, data, place)[0]


@dataclasses.dataclass(frozen=True)
class Table:
    """Numbered fields; one that is not there is zero, or nothing."""

    data: bytes
    place: int

    @classmethod
    def root(cls, data: bytes) -> "Table":
        """The table that a message starts with."""
        return cls(data, unpack(data, "<I", 0))

    def _field(self, number: int) -> int | None:
        """Where a field is."""
        listing = self.place - unpack(self.data, "<i", self.place)
        if 4 + 2 * number >= unpack(self.data, "<H", listing):
            return None
        offset = unpack(self.data, "<H", listing + 4 + 2 * number)
        return self.place + offset if offset else None

    def number(self, number: int, form: str) -> int:
        """A whole number, or a truth value as one."""
        place = self._field(number)
        return 0 if place is None else unpack(self.data, form, place)

    def _target(self, number: int) -> int | None:
        place = self._field(number)
        return None if place is None else place + unpack(self.data, "<I", place)

    def table(self, number: int) -> "Table | None":
        """Another table."""
        target = self._target(number)
        return None if target is None else Table(self.data, target)

    def text(self, number: int) -> str:
        """A name."""
        start, length = self._vector(number, 1)
        return self.data[start : start + length].decode(errors="replace")

    def tables(self, number: int) -> "list[Table]":
        """A list of tables."""
        start, length = self._vector(number, 4)
        places = range(start, start + 4 * length, 4)
        return [Table(self.data, at + unpack(self.data, "<I", at)) for at in places]

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """A list of pairs of whole numbers."""
        start, length = self._vector(number, 16)
        rows = struct.iter_unpack("<qq", self.data[start : start + 16 * length])
        return [(first, second) for first, second in rows]

    def _vector(self, number: int, size: int) -> tuple[int, int]:
        """Where a list starts, and its length."""
        start = self._target(number)
        if start is None:
            return 0, 0
        length = unpack(self.data, "<I", start)
        if start + 4 + size * length > len(self.data):
            raise DemosError(_BROKEN)
        return start + 4, length
