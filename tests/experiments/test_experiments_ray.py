"""The same cells on a real Ray, whose worker is killed, and whom strangers try."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading

import pytest

from hyperirl.cli import main
from hyperirl.experiments import cluster
from hyperirl.experiments.sockets import listening

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is an extra"
)

_VISIT = """
import sys
from ray._raylet import GcsClient
print(GcsClient(address=sys.argv[1]).internal_kv_keys(b"", namespace=None, timeout=20))
"""


def visit(address: str, **environment: str | None) -> bool:
    """Whether somebody else gets an answer from a Ray."""
    environment = {k: v for k, v in (os.environ | environment).items() if v is not None}
    visitor = [sys.executable, "-c", _VISIT, address]
    done = subprocess.run(visitor, env=environment, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done.returncode == 0


@pytest.fixture
def ray_environment(monkeypatch):
    """What the sweep sets is undone; what a user may have set does no harm."""
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.7:6379")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own.
def test_a_ray_of_ones_own(make_cell, first_start, tmp_path, ray_environment):
    """A worker is killed, and its cell is done all the same; strangers stay outside."""
    victim, lost = make_cell(seed=0, seconds=60), make_cell(seed=3, refuse=True)
    cells = [victim, make_cell(seed=1), make_cell(seed=2), lost]
    seen, said, visits = set(), [], {}

    def watch_and_kill():
        pid = first_start(victim, tmp_path)
        seen.update(listening(os.getpid()) or [])
        os.kill(pid, signal.SIGKILL)

    def opened(words):
        import ray

        said.append(words)
        address = ray.get_runtime_context().gcs_address
        visits["token"] = visit(address)
        visits["other token"] = visit(address, RAY_AUTH_TOKEN="1" * 64)
        visits["no token"] = visit(address, RAY_AUTH_MODE="disabled")

    killer = threading.Thread(target=watch_and_kill)
    killer.start()
    ended = []
    cluster.run_on_ray(
        cells,
        tmp_path,
        address=None,
        on_done=lambda cell, reason: ended.append((cell.id, reason)),
        say=opened,
    )
    killer.join()
    assert sorted(id for id, _ in ended) == sorted(cell.id for cell in cells)
    reasons = dict(ended)
    assert "this cell cannot be done" in reasons.pop(lost.id)
    assert set(reasons.values()) == {None}
    assert [cell.load(tmp_path)["value"] for cell in cells[:3]] == [0, 10, 20]
    journal = victim.work_folder(tmp_path) / "journal"
    assert len(journal.read_text().split()) == 2
    assert visits == {"token": True, "other token": False, "no token": False}
    assert "listens on 127.0.0.1" in said[0]
    if seen:  # Linux: the worker's own sockets are among them.
        assert len(seen) >= 4 and all(socket.local for socket in seen)
        assert str(min(socket.port for socket in seen)) in said[0]


def test_without_ray_there_is_one_sentence(monkeypatch, make_cell, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # And forgotten afterwards.
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
    quiet = "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"  # Else Ray has a warning for users.
    monkeypatch.delenv(quiet, raising=False)
    with pytest.raises(ValueError, match=r"pip install 'hyperirl\[ray\]'"):
        cluster.run_on_ray(
            [make_cell(seed=0)], tmp_path, address=None, on_done=lambda *_: None
        )
    assert os.environ[quiet] == "0"
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"


@pytest.mark.parametrize("command", [["sweep"], ["reproduce", "identities"]])
def test_a_cluster_needs_the_users_word(command, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--ray", "192.0.2.7:6379", "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "add `--trust-cluster` if it is yours" in capsys.readouterr().err


def test_the_library_asks_too(make_cell, tmp_path):
    with pytest.raises(ValueError, match="could run code"):
        cluster.run_on_ray(
            [make_cell(seed=0)], tmp_path, address="auto", on_done=lambda *_: None
        )
