import subprocess

from hyperirl.runs.provenance import commit_of


def _git(folder, *args):
    who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *who, *args], check=True, capture_output=True)


def test_commits_are_named_and_changes_are_told(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("")
    assert commit_of(file) is None  # Not a checkout.
    _git(tmp_path, "init")
    assert commit_of(file) is None  # Not under version control.
    _git(tmp_path, "add", "code.py")
    _git(tmp_path, "commit", "-m", "first")
    clean = commit_of(file)
    assert len(clean) == 40
    file.write_text("changed")
    assert commit_of(file) == f"{clean}-dirty"
