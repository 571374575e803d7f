"""What the tests of experiments share."""

import os
import time
from pathlib import Path

import pytest

from hyperirl.experiments.cell import Cell

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def worker_environment(monkeypatch):
    """Workers find the cells of the tests."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.fixture
def make_cell():
    return lambda **settings: Cell("trial", "cells_for_tests", settings)


@pytest.fixture
def first_start():
    """Waits until a cell has been started, and returns the id of its process."""

    def wait(cell: Cell, out: Path, seconds: float = 300) -> int:
        journal = cell.work_folder(out) / "journal"
        for _ in range(int(seconds * 20)):
            if journal.exists() and journal.read_text().endswith("\n"):
                return int(journal.read_text().split()[0])
            time.sleep(0.05)
        raise TimeoutError(f"{cell.id} did not start")

    return wait
