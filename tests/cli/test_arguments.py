"""`latest`: the newest run in `runs/`."""

from pathlib import Path

import pytest

from hyperirl.cli.arguments import point_latest_to, run_path


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        (tmp_path / "runs" / name).mkdir(parents=True)


@pytest.mark.parametrize("word", ["latest", "runs/latest"])
def test_latest_is_the_run_that_was_started_last(word):
    point_latest_to(Path("runs/first"))
    assert run_path(Path(word)) == Path("runs/first")
    point_latest_to(Path("runs/second").absolute())
    assert run_path(Path(word)) == Path("runs/second")
    assert (Path("runs/latest") / "..").resolve() == Path("runs").resolve()


def test_other_names_stay_as_they_are():
    point_latest_to(Path("runs/first"))
    assert run_path(Path("runs/second")) == Path("runs/second")


def test_a_run_elsewhere_leaves_the_link_alone():
    Path("elsewhere").mkdir()
    point_latest_to(Path("elsewhere"))
    assert not Path("runs/latest").exists()


def test_a_real_folder_of_that_name_is_never_replaced():
    Path("runs/latest").mkdir()
    point_latest_to(Path("runs/first"))
    assert not Path("runs/latest").is_symlink()
    assert run_path(Path("latest")) == Path("runs/latest")


def test_no_run_yet_is_one_sentence():
    with pytest.raises(ValueError, match="There is no latest run"):
        run_path(Path("latest"))
