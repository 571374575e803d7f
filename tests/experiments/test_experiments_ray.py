"""The same cells on a real Ray, whose worker is killed."""

import os
import signal
import threading

import pytest

from hyperirl.experiments import cluster

ray = pytest.importorskip("ray", reason="Ray is an extra")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own.
def test_a_killed_ray_worker_is_replaced_and_every_cell_counts_once(
    make_cell, first_start, tmp_path, monkeypatch
):
    """SIGKILL, in the middle of its work; the sweep completes."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    victim, lost = make_cell(seed=0, seconds=3), make_cell(seed=3, refuse=True)
    cells = [victim, make_cell(seed=1), make_cell(seed=2), lost]
    killer = threading.Thread(
        target=lambda: os.kill(first_start(victim, tmp_path), signal.SIGKILL)
    )
    killer.start()
    ended = []
    cluster.run_on_ray(
        cells,
        tmp_path,
        address=None,
        on_done=lambda cell, reason: ended.append((cell.id, reason)),
    )
    killer.join()
    assert sorted(id for id, _ in ended) == sorted(cell.id for cell in cells)
    reasons = dict(ended)
    assert "this cell cannot be done" in reasons.pop(lost.id)
    assert set(reasons.values()) == {None}
    assert [cell.load(tmp_path)["value"] for cell in cells[:3]] == [0, 10, 20]
    journal = victim.work_folder(tmp_path) / "journal"
    assert len(journal.read_text().split()) == 2


def test_without_ray_there_is_one_sentence(monkeypatch, make_cell, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'hyperirl\[ray\]'"):
        cluster.run_on_ray(
            [make_cell(seed=0)], tmp_path, address=None, on_done=lambda *_: None
        )
