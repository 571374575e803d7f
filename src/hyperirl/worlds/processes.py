"""Workers that are processes of this machine, or actors of a Ray cluster.

What makes the environments is sent to a process once, over a pipe that nobody else can
open; a process runs no main program of the user's, so scripts need no guard.
"""

import subprocess
import sys
import traceback
from multiprocessing.connection import Connection, Pipe
from typing import Any

import cloudpickle

from hyperirl.worlds.workers import AbstractWorker, Crew, Host, Make, WorkerDied

_GONE = (EOFError, BrokenPipeError, ConnectionResetError, OSError)


_MAIN = """
import sys
from multiprocessing.connection import Connection
pipe = Connection(int(sys.argv[1]))
sys.path[:] = pipe.recv()
from hyperirl.worlds.processes import serve
serve(pipe)
"""


class Process(AbstractWorker):
    """A process of this machine."""

    def __init__(self, make: Make):
        """Starts it."""
        self._make = cloudpickle.dumps(make)
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = Pipe()
        file = str(theirs.fileno())
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, file], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._pipe.send(sys.path)  # It finds what is found here.
        self._pipe.send_bytes(self._make)

    def ask(self, name: str, *arguments: Any) -> None:
        try:
            self._pipe.send((name, arguments))
        except _GONE as error:
            raise WorkerDied from error

    def answer(self) -> Any:
        try:
            found, failed = self._pipe.recv()
        except _GONE as error:
            raise WorkerDied from error
        if failed:
            raise RuntimeError(f"An environment failed in a worker:\n{failed}")
        return found

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        self._pipe.close()  # It ends when nobody can ask any more.
        self.process.kill()
        self.process.wait()

    def __del__(self):
        self.close()


class Actor(AbstractWorker):
    """An actor of Ray, which must have been started or joined before."""

    def __init__(self, make: Make):
        """Starts it, somewhere in the cluster."""
        import ray

        if not ray.is_initialized():
            raise ValueError(
                "Ray is not running here; start it with `ray.init()`, or join a "
                "cluster with `ray.init(address=...)`."
            )
        self._ray, self._make = ray, make
        self.restart()

    def ask(self, name: str, *arguments: Any) -> None:
        self._reference = getattr(self.actor, name).remote(*arguments)

    def answer(self) -> Any:
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDied from error

    def restart(self) -> None:
        self.actor: Any = self._ray.remote(Host).remote(self._make)


def crew(make: Make, workers: int, *, ray: bool = False) -> Crew:
    """So many workers, in processes of this machine or in Ray.

    Args:
        make: A stepper of so many environments; it is sent to each worker.
        workers: How many.
        ray: Whether they are actors of Ray, which must be running.
    """
    if workers < 1:
        raise ValueError(f"There must be at least one worker, got {workers}.")
    kind = Actor if ray else Process
    return Crew([kind(make) for _ in range(workers)])


def serve(pipe: Connection) -> None:
    """Answers until nobody can ask any more."""
    host = Host(cloudpickle.loads(pipe.recv_bytes()))
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = getattr(host, name)(*arguments), None
        except Exception:
            answer = None, traceback.format_exc()
        pipe.send(answer)
