"""The same cells as tasks of Ray, on this machine or on a cluster.

Each task has a process of its own. If that dies, or its machine, Ray starts the task
again; a cell that was half done goes on from its run folder if all machines share the
output folder.

A Ray that is started here can be reached from this machine only, and only by who knows
a token that is nowhere but in the environment of its processes. A cluster is a matter
of trust: what its machines send is unpickled here, so they could run code.
"""

import contextlib
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hyperirl.experiments.cell import Cell
from hyperirl.experiments.pool import RETRIES, OnDone, limits
from hyperirl.experiments.sockets import Listening, listening
from hyperirl.experiments.worker import perform

_LOOPBACK = "127.0.0.1"
_CORES = 1  # Of a task.
_TOO_SLOW = "timed out during startup"  # What Ray says on a busy machine.


def run_on_ray(
    cells: Iterable[Cell],
    out: Path,
    *,
    address: str | None,
    on_done: OnDone,
    trusted: bool = False,
    say: Callable[[str], None] = print,
    modules: Sequence[str] = (),
) -> None:
    """Does the cells; like `run_in_processes`.

    Args:
        cells: What to do.
        out: The folder of all experiments.
        address: Of a running cluster; by default one is started here.
        on_done: Called with the cell, and with the reason if it was given up.
        trusted: Whether the cluster at the address may run code here.
        say: Called with what was opened, in a sentence.
        modules: That a task imports first: they register environments.
    """
    check_trusted(address, trusted)
    with running(address, say) as ray:
        # `max_calls`: a fresh process for each cell, so its peak memory is its own.
        task = ray.remote(max_retries=RETRIES, max_calls=1, num_cpus=_CORES)(_perform)
        begin = lambda cell: task.remote(cell.to_json(), str(out), tuple(modules))
        cells = {begin(cell): cell for cell in cells}
        waiting = list(cells)
        while waiting:
            (done,), waiting = ray.wait(waiting, num_returns=1)
            on_done(cells[done], _outcome(ray, done, cells[done], out))


@contextlib.contextmanager
def running(address: str | None, say: Callable[[str], None]) -> Iterator[Any]:
    """The module `ray`, with a Ray that runs meanwhile.

    Args:
        address: Of a cluster that may run code here; by default one is started here.
        say: Called with what was opened, in a sentence.
    """
    ray = _import_ray(local=address is None)
    if address is None:
        _start_here(ray, say)
    else:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        say(
            f"Joined the Ray cluster at {address}; this machine listens on its network."
        )
    try:
        yield ray
    finally:
        ray.shutdown()


def check_trusted(address: str | None, trusted: bool) -> None:
    """Refuses to join a cluster without the user's word."""
    if address is not None and not trusted:
        raise ValueError(
            f"The Ray cluster at {address} could run code on this machine, which would "
            "listen on its network; add `--trust-cluster` if it is yours."
        )


def _start_here(ray: Any, say: Callable[[str], None]) -> None:
    """Starts a Ray that only this machine can reach, or none."""
    with warnings.catch_warnings():
        # Ray forks to start its own programs, which do not use JAX.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        try:
            _init_here(ray)
        except Exception as error:  # Ray has no class for it.
            if _TOO_SLOW not in str(error):
                raise
            ray.shutdown()
            _init_here(ray)  # Ray waits for half a minute only.
    opened = listening(os.getpid())
    if ray.util.get_node_ip_address() != _LOOPBACK or _reachable(opened):
        ray.shutdown()
        raise ValueError(
            "Ray would listen on the network, because it was imported before; start "
            "this in a process of its own, or without `--ray`."
        )
    ports = sorted({socket.port for socket in opened or []})
    where = f", ports {', '.join(map(str, ports))}" if ports else ""
    say(
        f"Ray runs on this machine only: it listens on {_LOOPBACK}{where}, and asks "
        "for a token that only its own processes have."
    )


def _init_here(ray: Any) -> None:
    # `local`: whatever cluster the environment or a file names is not joined.
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address=_LOOPBACK,
    )


def _reachable(opened: list[Listening] | None) -> bool:
    """Whether one of these sockets can be reached from elsewhere."""
    return any(not socket.local for socket in opened or [])


def _perform(cell: str, out: str, modules: Sequence[str]) -> dict[str, Any]:
    # The number of threads decides how sums are rounded; JAX has not started them yet.
    os.environ.update(limits(_CORES))
    return perform(Cell.from_json(cell), Path(out), modules)


def _outcome(ray: Any, done: Any, cell: Cell, out: Path) -> str | None:
    """Keeps the result of a task; returns why there is none."""
    try:
        result = ray.get(done)
    except ray.exceptions.RayError as error:
        return str(error).strip().splitlines()[-1]
    if not cell.result_path(out).exists():  # The machine has another disk than ours.
        cell.save(out, result)
    return None


def _import_ray(*, local: bool) -> Any:
    # Ray would otherwise look for how `uv` started us, and complain.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if local:
        # Else Ray takes the loopback address for a slip, and listens on the network.
        # The variable's name is older than what it does.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # Ray's own token would be a file that every user of the machine may read.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            "Running on a Ray cluster needs Ray, which is not installed; run "
            "`pip install 'hyperirl[ray]'`."
        ) from error
    return ray
