"""Folders that are exported, and files that are refused."""

import io
import zipfile

import export_cases
import numpy as np
import pytest

from hyperirl import saving
from hyperirl.cli import main
from hyperirl.export import ExportError, export, hyperirl_numpy
from hyperirl.runs import RunFolder, load_metadata

REWARD = export_cases.rewards()["mlp-choices-level"]
POLICY = export_cases.policies()["choices"]


@pytest.fixture
def run(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {"env": "cartpole"}, ["hyperirl"])
    saving.save_reward(REWARD, folder.reward_path, metadata={"discount": 0.9})
    saving.save_policy(POLICY, folder.policy_path)
    return folder.path


def test_a_run_gives_a_reward_a_policy_and_a_module(run, tmp_path, capsys):
    main(["export", str(run), "--to", str(tmp_path / "out")])
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"reward.npz", "policy.npz", "hyperirl_numpy.py", "README.md"}
    written = capsys.readouterr().out
    assert all(name in written for name in names)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "The level, 0.0693 a step, is included" in readme
    assert "integers from 0 to 3" in readme
    assert "learned with the discount 0.9: train with that one" in readme
    about = load_metadata(tmp_path / "out" / "reward.npz")["metadata"]
    assert about == {"discount": 0.9, "level_included": True}
    reward = hyperirl_numpy.load_reward(tmp_path / "out" / "reward.npz")
    np.testing.assert_allclose(reward(np.ones(3), 1), REWARD(np.ones(3), 1), rtol=1e-5)


def test_nothing_is_overwritten(run, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "policy.npz").write_text("mine")
    with pytest.raises(SystemExit):
        main(["export", str(run), "--to", str(out)])
    assert "already exists and is not overwritten" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["policy.npz"]
    with pytest.raises(ExportError, match="already exists"):
        export(run, out / "policy.npz")


def test_a_folder_with_other_files_may_be_used(run, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "train.py").write_text("mine")
    assert len(export(run, out)) == 4


def test_a_single_file_is_exported_as_what_it_is(run, tmp_path):
    assert "policy.npz" not in [
        p.name for p in export(run / "reward.npz", tmp_path / "r")
    ]
    assert "reward.npz" not in [
        p.name for p in export(run / "policy.npz", tmp_path / "p")
    ]


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(ExportError, match="no file"):
        export(tmp_path / "nothing.npz", tmp_path / "out")
    empty = RunFolder.create(tmp_path / "run", {}, []).path
    with pytest.raises(ExportError, match="neither a reward nor a policy"):
        export(empty, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _saved(path):
    saving.save_reward(REWARD, path)
    return path.read_bytes()


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "reward.npz"
    data = _saved(path)
    for length in (0, 10, len(data) // 2, len(data) - 30):
        path.write_bytes(data[:length])
        with pytest.raises(ExportError, match="not a reward that hyperirl wrote"):
            hyperirl_numpy.load_reward(path)


def test_a_pickle_is_never_opened(tmp_path):
    """An object whose unpickling would make a file."""

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "reward.npz"
    _saved(path)
    content = io.BytesIO()
    np.lib.format.write_array(content, np.array([Evil()]), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tree.more.npy", content.getvalue())
    with pytest.raises(ExportError, match="not a reward that hyperirl wrote"):
        hyperirl_numpy.load_reward(path)
    assert not (tmp_path / "ran").exists()


def test_the_wrong_file_is_named(run):
    with pytest.raises(ExportError, match="holds a hyperirl policy, not a reward"):
        hyperirl_numpy.load_reward(run / "policy.npz")


def test_an_old_reward_is_brought_up_to_date(tmp_path, monkeypatch):
    """Its file holds no level, and export adds it."""
    soft = export_cases.rewards()["mlp-choices"]
    path = tmp_path / "old.npz"
    monkeypatch.setattr(saving.files, "VERSION", 1)
    saving.save_reward(soft, path, metadata={"temperature": 0.1})
    monkeypatch.undo()
    with pytest.raises(ExportError, match="version 1 .* `hyperirl export`"):
        hyperirl_numpy.load_reward(path)
    export(path, tmp_path / "out")
    reward = hyperirl_numpy.load_reward(tmp_path / "out" / "reward.npz")
    assert reward.level == pytest.approx(0.1 * np.log(4))
