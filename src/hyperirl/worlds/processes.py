"""Workers that are processes of this machine, or actors of a Ray cluster.

What makes the environments is sent to a process once, over a pipe that nobody else can
open; a process runs no main program of the user's, so scripts need no guard.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

import cloudpickle

from hyperirl.worlds.engine import AbstractEngine
from hyperirl.worlds.workers import (
    MOST_WORKERS,
    AbstractWorker,
    Host,
    ShardedEngine,
    WorkerDied,
)

_GONE = (EOFError, OSError)

# Ctrl-C is for who asks: a run finishes its step, for which it needs its workers.
_MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from multiprocessing.connection import Connection
pipe = Connection(int(sys.argv[1]))
sys.path[:] = pipe.recv()
from hyperirl.worlds.processes import serve
serve(pipe)
"""


class Process(AbstractWorker):
    """A process of this machine."""

    def __init__(self, make: bytes):
        """Starts it."""
        self._make, self._calls = make, 0
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = Pipe()
        file = str(theirs.fileno())
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, file], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        with contextlib.suppress(*_GONE):
            self._pipe.send(sys.path)  # It finds what is found here.
            self._pipe.send_bytes(self._make)

    def ask(self, name: str, *arguments: Any) -> None:
        self._calls += 1
        with contextlib.suppress(*_GONE):  # Who waits for the answer will see.
            self._pipe.send((self._calls, name, arguments))

    def answer(self) -> tuple[Any, str | None]:
        try:
            while True:  # Of an earlier call, if its asker was interrupted.
                call, answer = self._pipe.recv()
                if call == self._calls:
                    return answer
        except _GONE as error:
            raise WorkerDied from error

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        """Ends it."""
        self._pipe.close()
        self.process.kill()
        self.process.wait()

    def __del__(self):
        self.close()


def serve(pipe: Connection) -> None:
    """Answers until nobody can ask any more."""
    host = Host(pipe.recv_bytes())
    with contextlib.suppress(*_GONE):
        while True:
            call, name, arguments = pipe.recv()
            pipe.send((call, host.do(name, *arguments)))


class Actor(AbstractWorker):
    """An actor of Ray, which must have been started or joined before."""

    def __init__(self, make: bytes):
        """Starts it, somewhere in the cluster."""
        import ray

        self._ray, self._make = ray, make
        self.restart()

    def ask(self, name: str, *arguments: Any) -> None:
        self._reference = self.actor.do.remote(name, *arguments)

    def answer(self) -> tuple[Any, str | None]:
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayError as error:  # A host never fails.
            raise WorkerDied from error

    def restart(self) -> None:
        kind = self._ray.remote(scheduling_strategy="SPREAD")(Host)
        self.actor: Any = kind.remote(self._make, sys.path)


def sharded(
    name: str,
    make: Callable[[], AbstractEngine],
    workers: int,
    *,
    ray: bool = False,
) -> ShardedEngine:
    """So many workers, in processes of this machine or in Ray.

    Args:
        name: Of the environment, for people.
        make: An engine; it is sent to each worker.
        workers: How many.
        ray: Whether they are actors of Ray, which must be running.
    """
    if not 1 <= workers <= MOST_WORKERS:
        raise ValueError(
            f"There are {MOST_WORKERS} workers at most and one at least, got {workers}."
        )
    if ray:
        _check_ray()
    kind, packed = Actor if ray else Process, cloudpickle.dumps(make)
    return ShardedEngine(name, [kind(packed) for _ in range(workers)])


def _check_ray() -> None:
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            "Ray is not installed; run `pip install 'hyperirl[ray]'`, or leave `ray` "
            "out to use processes of this machine."
        ) from error
    if not ray.is_initialized():
        raise ValueError(
            "Ray is not running here; start it with `ray.init()`, or join a cluster "
            "with `ray.init(address=...)`."
        )
