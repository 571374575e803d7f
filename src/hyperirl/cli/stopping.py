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
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = signal.SIGALRM  # Sent by this process to itself.
_SOON = 0.01  # Seconds.
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
        self._before = {n: signal.signal(n, self._interrupt) for n in _wanted()}
        self._alarm = signal.signal(_AGAIN, self._interrupt_again)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._ignored
        self._wakeup = signal.set_wakeup_fd(
            self._writer.fileno(), warn_on_full_buffer=False
        )
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = self._hook
        signal.signal(_AGAIN, self._alarm)
        signal.set_wakeup_fd(self._wakeup)
        for number, before in self._before.items():
            signal.signal(number, before)
        self._writer.close()  # Which ends the thread.
        self._thread.join()
        self._reader.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            raise KeyboardInterrupt

    def _ignored(self, what: Any) -> None:
        """Python forgets exceptions in finalizers, also that of a signal: once more."""
        if what.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _SOON)
        else:
            self._hook(what)

    def _interrupt_again(self, number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def _answer(self) -> None:
        """Runs beside everything else, until the other end is closed."""
        if not self._signalled():
            return
        if not self.unsaved:
            self._end(self.advice)
        _say("Stopping: finishing what runs, then saving. Again: stop at once.")
        if self._signalled():
            self._end(f"Stopped at once. {self.advice}")

    def _signalled(self) -> bool:
        """Waits for the next signal of somebody else; `False` if there will be none."""
        while byte := self._reader.recv(1):
            if byte[0] in _SIGNALS:
                return True
        return False

    def _end(self, words: str) -> None:
        _say(words)
        os._exit(INTERRUPTED)


def _wanted() -> tuple[signal.Signals, ...]:
    """Those that stop a command; under `nohup`, a closing terminal does not."""
    closing = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return tuple(n for n in _SIGNALS if closing or n != signal.SIGHUP)


def _say(words: str) -> None:
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    try:
        print(f"{show_cursor}\n{words}", file=sys.stderr, flush=True)
    except OSError:  # Nobody listens any more.
        pass
