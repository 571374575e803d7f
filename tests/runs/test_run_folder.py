import json
import math
import os
import signal
import subprocess
import sys
import time
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl.runs import ArraysError, RunError, RunFolder

CONFIG = {"env": "lqr", "method": "fisher", "seed": 0, "hidden": (32, 32)}


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "runs" / "first", CONFIG, ["hyperirl", "learn"])


def test_a_run_opens_as_it_was_created(run):
    opened = RunFolder.open(run.path)
    assert opened == run
    assert opened.config == {**CONFIG, "hidden": [32, 32]}


def test_provenance_says_how_to_repeat_the_run(run):
    found = run.provenance
    assert found["command"] == ["hyperirl", "learn"]
    assert set(found["versions"]) >= {"hyperirl", "jax", "jaxlib", "numpy", "optax"}
    assert found["started"].endswith("+00:00")
    assert found["cpu_count"] >= 1


def test_a_run_is_never_overwritten(run, tmp_path):
    with pytest.raises(RunError, match="never overwritten.*resume"):
        RunFolder.create(run.path, CONFIG, [])
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="already exists"):
        RunFolder.create(tmp_path / "file", CONFIG, [])


def test_an_empty_folder_may_become_a_run(tmp_path):
    assert RunFolder.create(tmp_path, CONFIG, []).path == tmp_path


@pytest.mark.parametrize("value", [math.inf, math.nan, {1}, print], ids=str)
def test_a_config_that_could_not_be_read_back_is_refused(tmp_path, value):
    with pytest.raises(RunError, match="plain finite"):
        RunFolder.create(tmp_path / "run", {"value": value}, [])
    assert not (tmp_path / "run").exists()


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        RunFolder.open(tmp_path / "absent")
    with pytest.raises(RunError, match="not the folder of a run.*config.json"):
        RunFolder.open(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RunError, match="config.json is not JSON"):
        RunFolder.open(tmp_path)
    with pytest.raises(RunError, match="not a folder"):
        RunFolder.open(tmp_path / "config.json")


def test_runs_of_a_newer_hyperirl_are_refused(run):
    run.save_json("provenance.json", run.provenance | {"format_version": 2})
    with pytest.raises(RunError, match="version 2"):
        RunFolder.open(run.path)


def test_metrics_come_back_in_order(run):
    assert run.metrics() == []
    run.append_metrics({"step": 1, "outer_loss": jnp.asarray(2.5), "skipped": False})
    run.append_metrics({"step": np.int64(2), "outer_loss": math.nan, "snr": math.inf})
    assert run.metrics() == [
        {"step": 1, "outer_loss": 2.5, "skipped": False},
        {"step": 2, "outer_loss": None, "snr": None},
    ]


def test_a_torn_last_line_is_dropped(run):
    run.append_metrics({"step": 1})
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "outer_')
    assert run.metrics() == [{"step": 1}]
    run.append_metrics({"step": 2})
    assert run.metrics() == [{"step": 1}, {"step": 2}]


def test_a_damaged_line_is_named(run):
    (run.path / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n{"step": 3}\n')
    with pytest.raises(RunError, match="Line 2"):
        run.metrics()


def test_metrics_after_the_checkpoint_are_dropped(run):
    for step in range(1, 6):
        run.append_metrics({"step": step})
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write('{"step"')
    run.truncate_metrics(3)
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    run.append_metrics({"step": 4})
    assert [row["step"] for row in run.metrics()] == [1, 2, 3, 4]


def test_truncating_nothing_is_fine(run):
    run.truncate_metrics(0)
    assert run.metrics() == []


def test_the_newest_checkpoint_is_kept(run):
    like = {"x": jnp.zeros(3)}
    assert run.load_checkpoint(like) is None
    for step in (1, 2):
        run.save_checkpoint({"x": jnp.full(3, float(step))}, step)
    state, step = run.load_checkpoint(like)
    assert (state["x"].tolist(), step) == ([2.0, 2.0, 2.0], 2)
    names = sorted(path.name for path in run.path.glob("*.npz"))
    assert names == ["checkpoint.npz", "checkpoint.previous.npz"]


def test_a_damaged_checkpoint_is_not_kept_as_the_one_before(run):
    for step in (1, 2):
        run.save_checkpoint(jnp.full(1, float(step)), step)
    newest = run.path / "checkpoint.npz"
    newest.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="of step 1"):
        run.load_checkpoint(jnp.zeros(1))
    run.save_checkpoint(jnp.full(1, 3.0), 3)
    newest.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="of step 1"):
        assert run.load_checkpoint(jnp.zeros(1))[1] == 1


def test_what_a_killed_writer_left_is_ignored_and_removed(run):
    run.save_checkpoint(jnp.ones(1), 1)
    leftover = run.path / ".checkpoint.npz.123.part"
    leftover.write_bytes(b"torn")
    assert run.load_checkpoint(jnp.zeros(1))[1] == 1
    run.save_checkpoint(jnp.ones(1), 2)
    assert not leftover.exists()


def test_a_checkpoint_of_another_run_is_refused(run):
    run.save_checkpoint({"x": jnp.zeros(3)}, 1)
    with pytest.raises(ArraysError, match="other settings"):
        run.load_checkpoint({"x": jnp.zeros(4)})


_WRITER = """
import sys
import jax.numpy as jnp
from hyperirl.runs import RunFolder
run = RunFolder.open(sys.argv[1])
step = 0
while True:
    step += 1
    run.append_metrics({"step": step})
    run.save_checkpoint({"x": jnp.full(50_000, float(step))}, step)
    if step == 1:
        print("started", flush=True)
"""


def test_a_checkpoint_survives_sigkill_at_any_moment(run):
    """Real kills, at moments nobody chose; then everything must be readable."""
    for delay in (0.0, 0.013, 0.05):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(run.path)], stdout=subprocess.PIPE
        )
        with writer:
            writer.stdout.readline()
            time.sleep(delay)
            os.kill(writer.pid, signal.SIGKILL)
        state, step = run.load_checkpoint({"x": jnp.zeros(50_000)})
        assert np.unique(state["x"]).tolist() == [float(step)]
        assert step <= run.metrics()[-1]["step"] <= step + 1
        run.truncate_metrics(0)


def test_a_second_writer_is_refused(run):
    with run.lock():
        with pytest.raises(RunError, match="Another process"):
            with RunFolder.open(run.path).lock():
                pass
    with run.lock():
        pass


def test_json_files_come_back(run):
    assert run.load_json("evaluation.json") is None
    run.save_json(
        "evaluation.json", {"gap": {"mean": np.float32(0.5), "low": math.nan}}
    )
    assert run.load_json("evaluation.json") == {"gap": {"mean": 0.5, "low": None}}
    json.loads((run.path / "evaluation.json").read_text())
    (run.path / "evaluation.json").write_text("{")
    with pytest.raises(RunError, match="not JSON"):
        run.load_json("evaluation.json")


def test_the_rows_of_a_long_run_are_not_held(tmp_path):
    """Memory that grows with a run's length would end it."""
    folder = RunFolder.create(tmp_path / "run", {}, [])
    row = {f"column {i}": 1.5 for i in range(30)}
    lines = (json.dumps(row | {"step": step}) + "\n" for step in range(1, 3001))
    (folder.path / "metrics.jsonl").write_text("".join(lines))
    tracemalloc.start()
    folder.truncate_metrics(3000)
    count = sum(1 for _ in folder.rows())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3000 and peak < 500_000
