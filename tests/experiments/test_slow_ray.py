"""A Ray that is slow to start gets a second chance; one that is broken does not."""

import types

import pytest

from hyperirl.experiments import cluster


class Ray:
    """Stands for Ray, which cannot be made slow: its first starts fail."""

    def __init__(self, *failures):
        self.failures, self.starts, self.stops = list(failures), 0, 0
        self.util = types.SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def init(self, **options):
        assert options["_node_ip_address"] == "127.0.0.1"
        self.starts += 1
        if self.failures:
            raise Exception(self.failures.pop(0))

    def shutdown(self):
        self.stops += 1


SLOW = "The current node timed out during startup. This could happen because ..."


@pytest.mark.parametrize(
    ("failures", "starts", "raised"),
    [((SLOW,), 2, None), ((SLOW, SLOW), 2, "timed out"), (("broken",), 1, "broken")],
)
def test_only_a_slow_start_is_tried_once_more(monkeypatch, failures, starts, raised):
    monkeypatch.setattr(cluster, "listening", lambda pid: [])
    ray, said = Ray(*failures), []
    if raised is None:
        cluster._start_here(ray, said.append)
        assert len(said) == 1 and ray.stops == 1
    else:
        with pytest.raises(Exception, match=raised):
            cluster._start_here(ray, said.append)
    assert ray.starts == starts
