import shutil

import pytest
from commands import make_run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(finished_run, tmp_path / "run")
