"""The same cells as tasks of Ray, on this machine or on a cluster.

Each task has a process of its own. If that dies, or its machine, Ray starts the task
again; a cell that was half done goes on from its run folder if all machines share the
output folder.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hyperirl.experiments.cell import Cell
from hyperirl.experiments.pool import RETRIES, OnDone
from hyperirl.experiments.worker import perform


def run_on_ray(
    cells: Iterable[Cell], out: Path, *, address: str | None, on_done: OnDone
) -> None:
    """Does the cells; like `run_in_processes`.

    Args:
        cells: What to do.
        out: The folder of all experiments.
        address: Of a running cluster; by default one is started here.
        on_done: Called with the cell, and with the reason if it was given up.
    """
    ray = _import_ray()
    local = {} if address else {"_node_ip_address": "127.0.0.1"}
    ray.init(
        address=address,
        include_dashboard=False if address is None else None,
        log_to_driver=False,
        logging_level="ERROR",
        **local,
    )
    # `max_calls`: a fresh process for each cell, so that its peak memory is its own.
    task = ray.remote(max_retries=RETRIES, max_calls=1, num_cpus=1)(_perform)
    try:
        cells = {task.remote(cell.to_json(), str(out)): cell for cell in cells}
        waiting = list(cells)
        while waiting:
            (done,), waiting = ray.wait(waiting, num_returns=1)
            on_done(cells[done], _outcome(ray, done, cells[done], out))
    finally:
        ray.shutdown()


def _perform(cell: str, out: str) -> dict[str, Any]:
    return perform(Cell.from_json(cell), Path(out))


def _outcome(ray: Any, done: Any, cell: Cell, out: Path) -> str | None:
    """Keeps the result of a task; returns why there is none."""
    try:
        result = ray.get(done)
    except ray.exceptions.RayError as error:
        return str(error).strip().splitlines()[-1]
    if not cell.result_path(out).exists():  # The machine has another disk than ours.
        cell.save(out, result)
    return None


def _import_ray() -> Any:
    # Ray would otherwise look for how `uv` started us, and complain.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            "Running on a Ray cluster needs Ray, which is not installed; run "
            "`pip install 'hyperirl[ray]'`."
        ) from error
    return ray
