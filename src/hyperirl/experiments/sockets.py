"""Which sockets a process and those it started listen on, as Linux knows it."""

import contextlib
import dataclasses
import ipaddress
import os
from pathlib import Path

_LISTEN = "0A"
_PROC = Path("/proc")


@dataclasses.dataclass(frozen=True, order=True)
class Listening:
    """A TCP socket that waits for somebody."""

    address: str
    port: int

    @property
    def local(self) -> bool:
        """Whether nobody but this machine can reach it."""
        address = ipaddress.ip_address(self.address)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def listening(pid: int) -> list[Listening] | None:
    """Those of a process and of all below it; `None` where there is no `/proc`."""
    if not (_PROC / "net" / "tcp").exists():
        return None
    sockets = {
        link.removeprefix("socket:[").removesuffix("]")
        for process in _family(pid)
        for link in _links(process)
        if link.startswith("socket:[")
    }
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        if (_PROC / "net" / table).exists()
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]
    ]
    return sorted(
        _parse(words[1])
        for words in lines
        if words[3] == _LISTEN and words[9] in sockets
    )


def _parse(place: str) -> Listening:
    """From `0100007F:1F90`: words of four bytes, each as this machine stores it."""
    address, port = place.split(":")
    words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
    return Listening(str(ipaddress.ip_address(b"".join(words))), int(port, 16))


def _family(pid: int) -> set[int]:
    parents = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The name, in parentheses, may hold anything.
            after = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        parents[int(folder.name)] = int(after[1])
    found = {pid}
    while (
        new := {child for child, parent in parents.items() if parent in found} - found
    ):
        found |= new
    return found


def _links(pid: int) -> list[str]:
    """What the open files of a process are; nothing if it has ended."""
    found = []
    with contextlib.suppress(OSError):
        for file in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):  # Closed meanwhile.
                found.append(os.readlink(file))
    return found
