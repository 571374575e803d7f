"""Sketches survive a trip to disk, and nothing else is taken for one."""

import jax
import numpy as np
import pytest
from curvature_problems import decaying_rows

from hyperirl.curvature import Shrinkage, load_sketch, save_sketch, sketch_rows


@pytest.fixture
def sketch(getkey):
    rows = decaying_rows(getkey(), 23, 6)
    return sketch_rows(rows, size=2, buffer=4, rule=Shrinkage.LAST)


@pytest.fixture
def path(tmp_path, sketch):
    return save_sketch(sketch, tmp_path / "sketch.npz")


def rewritten(path, **changes):
    """The file with some entries replaced, or removed where the change is None."""
    with np.load(path) as file:
        content = {**file, **changes}
    target = path.with_name("changed.npz")
    np.savez(target, **{k: v for k, v in content.items() if v is not None})
    return target


def test_a_loaded_sketch_is_the_one_saved(path, sketch):
    loaded = load_sketch(path)
    assert jax.tree.structure(loaded) == jax.tree.structure(sketch)
    for ours, theirs in zip(
        jax.tree.leaves(loaded), jax.tree.leaves(sketch), strict=True
    ):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_an_existing_file_is_not_overwritten(path, sketch):
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="not overwritten"):
        save_sketch(sketch, path)
    assert path.read_bytes() == before


def test_nothing_but_the_sketch_is_left_in_the_folder(path):
    assert [entry.name for entry in path.parent.iterdir()] == ["sketch.npz"]


def test_another_version_is_refused(path):
    with pytest.raises(ValueError, match="has version 2"):
        load_sketch(rewritten(path, version=np.asarray(2)))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"extra": np.ones(1)}, "`extra` is not expected"),
        ({"buffer": None}, "there is no `buffer`"),
        ({"rule": np.asarray("other")}, "unknown rule"),
        ({"rows": np.ones(3)}, "damaged"),
        ({"rows": np.full((2, 6), np.nan)}, "not finite"),
        ({"rows": np.ones((2, 5))}, "do not fit"),
        ({"pending": np.asarray(99)}, "out of range"),
        ({"pending": np.asarray(0)}, "more rows wait"),
        ({"rows_refused": np.asarray(99)}, "counts are out of range"),
        ({"rounding": np.asarray(-1.0)}, "counts are out of range"),
        ({"rounding": np.asarray(1, np.longdouble)}, "`rounding` is float128"),
        ({"rows": np.ones((0, 6)), "buffer": np.ones((0, 6))}, "out of range"),
        ({"version": np.ones((2, 2))}, "has version"),
        ({"rule": np.asarray(1)}, "unknown rule"),
    ],
)
def test_content_that_is_not_a_sketch_is_refused(path, changes, message):
    with pytest.raises(ValueError, match=message):
        load_sketch(rewritten(path, **changes))


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "pickle.npz"
    np.savez(path, rows=np.asarray([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="not a sketch file"):
        load_sketch(path)


def test_files_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("hello")
    with pytest.raises(ValueError, match="not a sketch file"):
        load_sketch(path)
