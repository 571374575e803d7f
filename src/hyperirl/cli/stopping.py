"""Ctrl-C, a polite request to stop, and a terminal that closes: save, then end.

Python looks at signals only between two of its own instructions, and a program may
compile for twenty seconds. So a thread of its own answers at once.
"""

import os
import signal
import socket
import sys
import threading
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # The exit code.


class Stopping:
    """While it is entered, the first signal is a `KeyboardInterrupt`.

    If nothing is unsaved, the program ends there and then. A second signal ends it in
    any case, and claims nothing.

    Attributes:
        unsaved: Whether there is something to save before the end.
    """

    def __init__(self, advice: str):
        """`advice` is printed when the program ends at once."""
        self.advice = advice
        self.unsaved = False
        self._count = 0

    def __enter__(self) -> "Stopping":
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._before = [signal.signal(number, self._interrupt) for number in _SIGNALS]
        self._wakeup = signal.set_wakeup_fd(
            self._writer.fileno(), warn_on_full_buffer=False
        )
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, before in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, before)
        self._writer.close()  # Which ends the thread.
        self._thread.join()
        self._reader.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            raise KeyboardInterrupt

    def _answer(self) -> None:
        """Runs beside everything else, until the other end is closed."""
        if not self._reader.recv(1):
            return
        if not self.unsaved:
            self._end(self.advice)
        _say("Stopping: finishing what runs, then saving. Again: stop at once.")
        if self._reader.recv(1):
            self._end(f"Stopped at once. {self.advice}")

    def _end(self, words: str) -> None:
        _say(words)
        os._exit(INTERRUPTED)


def _say(words: str) -> None:
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    try:
        print(f"{show_cursor}\n{words}", file=sys.stderr, flush=True)
    except OSError:  # Nobody listens any more.
        pass
