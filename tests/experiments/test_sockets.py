"""What listens is seen, whoever of the family opened it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hyperirl.experiments.sockets import Listening, listening

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="Only Linux says"
)


@pytest.mark.parametrize(
    "family, address, seen, local",
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1", True),
        (socket.AF_INET, "0.0.0.0", "0.0.0.0", False),
        (socket.AF_INET6, "::1", "::1", True),
        (socket.AF_INET6, "::", "::", False),
        (socket.AF_INET6, "::ffff:127.0.0.1", "::ffff:7f00:1", True),
    ],
)
def test_a_socket_is_found(family, address, seen, local):
    with socket.socket(family) as opened:
        try:
            opened.bind((address, 0))
        except OSError:
            pytest.skip("This machine does not have such addresses")
        port = opened.getsockname()[1]
        assert port not in {found.port for found in listening(os.getpid())}
        opened.listen()
        (found,) = [f for f in listening(os.getpid()) if f.port == port]
    assert found == Listening(seen, port) and found.local is local


_CHILD = """
import socket, sys
opened = socket.create_server(("127.0.0.1", 0))
print(opened.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_socket_of_a_child_is_found():
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        port = int(child.stdout.readline())
        found = listening(os.getpid())
        child.stdin.close()
    assert port in {f.port for f in found}
    assert port not in {f.port for f in listening(os.getpid())}
