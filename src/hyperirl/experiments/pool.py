"""Cells on one machine: each in a fresh process, a few at a time.

A process that dies takes nothing along: its cell is tried again, then given up, and the
others go on.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from hyperirl.experiments.cell import Cell
from hyperirl.experiments.worker import REFUSED

OnDone = Callable[[Cell, str | None], None]  # With the reason, if it was given up.

RETRIES = 2
_PATIENCE = 20.0  # Seconds a process has to save its state when it is asked to stop.


def default_workers() -> int:
    """One a core: compiling, most of the work of short cells, uses no more."""
    return os.cpu_count() or 1


def run_in_processes(
    cells: Iterable[Cell],
    out: Path,
    *,
    workers: int,
    on_done: OnDone,
    modules: Sequence[str] = (),
) -> None:
    """Does the cells; `on_done` is called after each, in the order they end.

    Args:
        cells: What to do; those that are finished take no time.
        out: The folder of all experiments.
        workers: Processes at a time.
        on_done: Called with the cell, and with the reason if it was given up.
        modules: That a process imports first: they register environments.
    """
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = _Processes(out, threads, modules)
    cells = list(cells)
    with ThreadPoolExecutor(workers) as executor:
        futures = {executor.submit(pool.run, cell): cell for cell in cells}
        waiting = set(futures)
        try:
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    on_done(futures[future], future.result())
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            pool.stop()
            raise


class _Processes:
    """The processes that are running now."""

    def __init__(self, out: Path, threads: int, modules: Sequence[str]):
        self._out, self._modules = out, modules
        self._environment = os.environ | limits(threads)
        self._running: set[subprocess.Popen] = set()
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def run(self, cell: Cell) -> str | None:
        """Does a cell, if need be several times; returns why it was given up."""
        log = cell.log_path(self._out)
        log.parent.mkdir(parents=True, exist_ok=True)
        code = 1
        for _ in range(1 + RETRIES):
            code = self._run_once(cell, log)
            if self._stopped.is_set():
                return "stopped"
            if code == 0 and cell.result_path(self._out).exists():
                return None
            if code == REFUSED:
                break
        return _last_line(log) or f"the process ended with code {code}"

    def _run_once(self, cell: Cell, log: Path) -> int:
        program = [sys.executable, "-m", "hyperirl.experiments.worker"]
        command = [*program, str(self._out), *self._modules]
        with self._lock, open(log, "a") as lines:
            if self._stopped.is_set():
                return 1
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=lines,
                stderr=lines,
                env=self._environment,
                text=True,
                start_new_session=True,  # Ctrl-C is for us; we tell the others.
            )
            self._running.add(process)
        assert process.stdin is not None
        try:
            process.stdin.write(cell.to_json() + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # It died at once; its exit code says so.
        try:
            return process.wait()
        finally:
            self._running.discard(process)
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass

    def stop(self) -> None:
        """Asks all processes to save and end, as Ctrl-C would; then ends them."""
        with self._lock:
            self._stopped.set()
            running = list(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def limits(threads: int) -> dict[str, str]:
    """The environment of a process that may use so many cores."""
    names: Sequence[str] = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {name: str(threads) for name in names}


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
