import shutil

import pytest

from hyperirl import demos
from hyperirl.cli import main
from hyperirl.learning import learn


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A short run of a small MDP, learned and evaluated by the commands' own code."""
    home = tmp_path_factory.mktemp("finished")
    demos.save(demos.collect("tabular", 40, seed=0), home / "tabular.npz")
    path = home / "run"
    learn("tabular", str(home / "tabular.npz"), steps=3, agent_episodes=16, out=path)
    main(["evaluate", str(path), "--budget=8192", "--seeds=1", "--no-transfer"])
    return path


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(finished_run, tmp_path / "run")
