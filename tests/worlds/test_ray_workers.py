"""Shards in actors of a real Ray, one of which is killed.

In a process of its own: Ray reads its settings when it is first imported.
"""

import functools
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest


def work_on_ray() -> None:
    import warnings

    from shards import assert_same, here, robots, work

    from hyperirl.experiments import cluster
    from hyperirl.worlds.engine import Engine
    from hyperirl.worlds.processes import sharded

    make = functools.partial(Engine, "robots", robots)
    expected = work(here(make))
    with cluster.running(None, print) as ray:
        engine = sharded("robots", make, 2, ray=True)
        assert_same(work(engine), expected)
        kill = lambda: ray.kill(engine.workers[1].actor)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert_same(work(engine, kill), expected)
        print(*(warning.message for warning in told))


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("ray", "mujoco"))),
    reason="Ray and MuJoCo are extras",
)
def test_actors_do_what_shards_here_do_also_after_a_death():
    source = pathlib.Path(importlib.import_module("hyperirl").__file__).parents[1]
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert "listens on 127.0.0.1" in done.stdout
    assert "Worker 1 died and was replaced; what it was doing is done" in done.stdout


if __name__ == "__main__":
    work_on_ray()
