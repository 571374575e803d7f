"""Cells in real processes, some of which are killed."""

import os
import signal
import threading

import pytest

from hyperirl.cli.cells import cell_runner
from hyperirl.experiments.pool import RETRIES, run_in_processes


@pytest.fixture
def run(tmp_path):
    def run(cells, workers=2, modules=()):
        ended = {}
        run_in_processes(
            cells,
            tmp_path,
            workers=workers,
            on_done=lambda cell, reason: ended.setdefault(cell.id, []).append(reason),
            modules=modules,
        )
        return ended

    return run


def starts(cell, out):
    return len((cell.work_folder(out) / "journal").read_text().split())


def test_a_killed_worker_is_replaced_and_every_cell_counts_once(
    run, make_cell, first_start, tmp_path
):
    """SIGKILL, in the middle of its work."""
    victim = make_cell(seed=0, seconds=60)
    cells = [victim, *(make_cell(seed=seed) for seed in (1, 2))]
    killer = threading.Thread(
        target=lambda: os.kill(first_start(victim, tmp_path), signal.SIGKILL)
    )
    killer.start()
    ended = run(cells)
    killer.join()
    assert ended == {cell.id: [None] for cell in cells}
    assert [starts(cell, tmp_path) for cell in cells] == [2, 1, 1]
    assert [cell.load(tmp_path)["value"] for cell in cells] == [0, 10, 20]
    assert sorted(path.stem for path in (tmp_path / "trial/cells").iterdir()) == sorted(
        cell.id for cell in cells
    )


def test_what_always_dies_is_given_up_and_the_rest_goes_on(run, make_cell, tmp_path):
    lost, good = make_cell(seed=0, always_die=True), make_cell(seed=1)
    ended = run([lost, good])
    assert ended[good.id] == [None] and "code 9" in ended[lost.id][0]
    assert starts(lost, tmp_path) == 1 + RETRIES
    assert lost.load(tmp_path) is None


def test_what_is_refused_is_not_tried_again(run, make_cell, tmp_path):
    cell = make_cell(seed=0, refuse=True)
    ended = run([cell])
    assert "this cell cannot be done" in ended[cell.id][0]
    assert starts(cell, tmp_path) == 1


def test_results_say_what_they_cost_and_hold_no_nan(run, make_cell, tmp_path):
    cell = make_cell(seed=1)
    run([cell])
    result = cell.load(tmp_path)
    assert result["nan"] is None and result["peak_mb"] > 10
    assert result["provenance"]["versions"]["jax"]


def test_modules_are_imported_before_a_cell_is_done(
    run, make_cell, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    note = tmp_path / "registered"
    (tmp_path / "my_envs.py").write_text(f"open({str(note)!r}, 'w').close()")
    cell = make_cell(seed=1)
    assert run([cell], modules=["my_envs"]) == {cell.id: [None]}
    assert note.exists()
    other = make_cell(seed=2)
    assert "No module named 'nowhere'" in run([other], modules=["nowhere"])[other.id][0]


def test_what_is_timed_has_the_machine_for_itself(make_cell, tmp_path):
    cells = [make_cell(seed=seed, seconds=1.5) for seed in (0, 1)]
    assert cell_runner(tmp_path, 2, None, "timing")(cells, True) == {}
    times = sorted(cell.load(tmp_path)["when"] for cell in cells)
    assert times[0][1] <= times[1][0]
