import dataclasses
import json

import pytest

from hyperirl.experiments.cell import Cell, finished


@pytest.fixture
def cell():
    settings = {"config": {"env": "lqr", "damping": 0.1, "hidden": [3]}, "seed": 4}
    return Cell("trial", "some.module", settings)


def test_ids_are_readable_and_differ_with_the_settings(cell):
    other = dataclasses.replace(cell, settings=cell.settings | {"seed": 5})
    assert cell.id.startswith("lqr-0.1-4-")
    assert cell.id != other.id


def test_ids_do_not_depend_on_the_order_of_settings(cell):
    turned = dict(reversed(cell.settings.items()))
    again = dataclasses.replace(cell, settings=turned)
    assert again.id.rsplit("-")[-1] == cell.id.rsplit("-")[-1]


def test_cells_survive_json(cell):
    assert Cell.from_json(cell.to_json()).id == cell.id


def test_a_cell_is_finished_when_its_result_is_there(cell, tmp_path):
    assert cell.load(tmp_path) is None and finished([cell], tmp_path) == {}
    cell.save(tmp_path, {"value": 1})
    assert finished([cell], tmp_path) == {cell.id: {"value": 1}}
    assert json.loads(cell.result_path(tmp_path).read_text())["cell"]["settings"]


def test_a_damaged_result_gets_one_sentence(cell, tmp_path):
    cell.save(tmp_path, {"value": 1})
    cell.result_path(tmp_path).write_text("{")
    with pytest.raises(ValueError, match="delete it to have the cell run again"):
        cell.load(tmp_path)
