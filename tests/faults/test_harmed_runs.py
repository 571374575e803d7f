"""Runs that are harmed while they learn, or between two of their steps."""

import errno
import os
import resource
import shutil
import signal

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hyperirl import demos, runs
from hyperirl.learning import learn, resume
from hyperirl.learning.loop import Diverged
from hyperirl.runs import atomic

STEPS = 12  # Checkpoints after 5, 10 and 12.


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), path)
    return dict(task="tabular", demos=str(path), agent_episodes=16, progress=False)


@pytest.fixture(scope="module")
def unharmed(settings, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    learn(**settings, steps=STEPS, out=path)
    return path


@pytest.fixture
def harmed(unharmed, tmp_path):
    return shutil.copytree(unharmed, tmp_path / "harmed")


def content(folder):
    names = ("checkpoint.npz", "reward.npz", "policy.npz")
    return {name: (folder / name).read_bytes() for name in names}


WOUNDS = {
    "cut": lambda data: data[: len(data) // 2],
    "flipped": lambda data: data[:-3000] + b"\xff" * 16 + data[-2984:],
}


@pytest.mark.parametrize("wound", WOUNDS)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(unharmed, harmed, wound):
    path = harmed / "checkpoint.npz"
    path.write_bytes(WOUNDS[wound](path.read_bytes()))
    with pytest.warns(UserWarning, match="goes on from the one before, of step 10"):
        again = resume(harmed, progress=False)
    assert [row["step"] for row in again.metrics] == list(range(1, STEPS + 1))
    assert content(harmed) == content(unharmed)


def test_two_damaged_checkpoints_are_refused_and_kept(harmed):
    for name in ("checkpoint.npz", "checkpoint.previous.npz"):
        (harmed / name).write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"harmed/checkpoint\.npz .* damaged"):
        resume(harmed, progress=False)
    assert (harmed / "checkpoint.previous.npz").exists()


def test_the_one_before_is_kept_without_second_names_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    folder = runs.RunFolder.create(tmp_path / "run", {}, [])
    for step in (1, 2):
        folder.save_checkpoint({"x": jnp.full(3, step)}, step)
    kept = runs.load_metadata(tmp_path / "run" / "checkpoint.previous.npz")
    assert kept == {"step": 1}


def test_a_file_that_has_two_names_leaves_nothing_beside_it(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    for _ in range(2):
        atomic.keep(tmp_path / "a", tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_old_file_and_names_the_new_one(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    atomic.write_bytes(path, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        atomic.write_bytes(path, b"new")
    assert caught.value.filename == str(path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize("left", [15, 12, 0])
def test_a_line_that_does_not_fit_on_the_disk_is_an_error_and_not_a_lost_row(
    tmp_path, left
):
    """A limit on the size of files, as a disk that is full, or almost."""
    folder = runs.RunFolder.create(tmp_path / "run", {}, [])
    folder.append_metrics({"step": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        with pytest.raises(OSError, match="metrics") as caught:
            folder.append_metrics({"step": 2})
        assert caught.value.filename == str(tmp_path / "run" / "metrics.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert folder.metrics() == [{"step": 1}]
    folder.append_metrics({"step": 2})
    assert folder.metrics() == [{"step": 1}, {"step": 2}]


def not_a_number():
    """An optimizer that loses its way."""
    update = lambda updates, state, params=None: (
        {} if updates is None else optax.tree.scale(jnp.float32(jnp.nan), updates),
        state,
    )
    return optax.GradientTransformation(lambda params: (), update)


@pytest.mark.parametrize("lost", [not_a_number, lambda: optax.sgd(1e38)])
def test_nothing_that_is_not_finite_reaches_the_parameters(settings, tmp_path, lost):
    """The update itself is not finite, though the direction is."""
    with pytest.raises(Diverged, match="last good state is in"):
        learn(
            **settings,
            steps=STEPS,
            natural=False,
            optimizer=lost(),
            out=tmp_path / "run",
        )
    with np.load(tmp_path / "run" / "checkpoint.npz") as found:
        learned = [n for n in found.files if ".reward" in n or ".policy" in n]
        assert len(learned) >= 3
        assert all(np.isfinite(found[name]).all() for name in learned)
