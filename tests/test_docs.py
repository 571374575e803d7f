"""The pages lead somewhere, and say what the code says."""

import pathlib
import re
import sys
import typing

import pytest

from hyperirl import cli
from hyperirl.options import NAMES

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import reference_pages
    finally:
        sys.path.pop(0)
    return reference_pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_to_a_file(page):
    targets = LINK.findall(page.read_text())
    near = [target for target in targets if "://" not in target]
    missing = [target for target in near if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_shown_exists(page):
    shown = re.findall(r"\{literalinclude\} (\S+)", page.read_text())
    assert all((page.parent / path).exists() for path in shown)


def test_every_page_is_in_the_contents():
    contents = (ROOT / "docs/index.md").read_text().split()
    names = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert names <= set(contents)


def test_every_setting_has_its_row(reference):
    rows = re.findall(r"^\| `(\w+)` \| \S", reference.settings(), re.MULTILINE)
    assert sorted(rows) == sorted(NAMES)


def test_every_number_of_a_run_has_its_row(reference):
    rows = re.findall(r"^\| `(\w+)` \|", reference.metrics(), re.MULTILINE)
    assert {"nll_valid", "floor_valid", "gap", "soft_bellman_cosine"} <= set(rows)


def test_every_command_has_its_help(reference):
    kinds = typing.get_args(cli.Command)
    named = {typing.get_args(kind)[1].name for kind in kinds}
    assert named - {"demos", "version"} == set(reference._COMMANDS)
