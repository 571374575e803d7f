"""Files of arrays from somebody who means harm: one sentence, and no memory."""

import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from fuzzing import damaged, damaged_inside, members, npy, zipped
from loaders import ARCHIVES, OTHERS

from hyperirl import archive

CASES = 100  # Of each kind of damage, for each loader.


named = lambda loader: type(loader).__name__
loaders = pytest.mark.parametrize("loader", ARCHIVES, ids=named)
others = pytest.mark.parametrize("loader", OTHERS, ids=named)


def refused(loader, path) -> bool:
    """Whether the file is refused, in one sentence, soon, and with little memory."""
    began = time.thread_time()
    tracemalloc.start()
    try:
        loader.read(path)
    except ValueError as error:
        words = str(error)
        assert (
            loader.named(path) in words and "\n" not in words and len(words) < 1000
        ), words
        return True
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**22 + 20 * path.stat().st_size
        assert time.thread_time() - began < 10  # However busy the machine is.
    return False


def largest(contents):
    arrays = [name for name in contents if name != "metadata.npy"]
    return max(arrays, key=lambda name: len(contents[name]))


@loaders
@pytest.mark.parametrize("damage", [damaged, damaged_inside])
def test_a_damaged_file_gets_a_sentence(tmp_path, loader, damage):
    path = loader.write(tmp_path)
    whole, random, count = path.read_bytes(), np.random.default_rng(0), 0
    assert not refused(loader, path)
    for _ in range(CASES):
        path.write_bytes(damage(whole, random))
        count += refused(loader, path)
    assert count > CASES / 2  # The others hit a date or a comment.


@others
def test_a_damaged_file_of_others_gets_a_sentence(tmp_path, loader):
    path = loader.write(tmp_path)
    whole, random, count = path.read_bytes(), np.random.default_rng(0), 0
    assert not refused(loader, path)
    for _ in range(CASES):
        path.write_bytes(loader.damaged(whole, random))
        count += refused(loader, path)
    assert count > CASES / 5  # Tables and documents have much that may be anything.


@loaders
@pytest.mark.parametrize("shape", [(10**12,), (10**6, 10**6), (2**62, 8), (-1, -1)])
def test_a_promise_of_terabytes_is_not_believed(tmp_path, loader, shape):
    path = loader.write(tmp_path)
    contents = members(path.read_bytes())
    contents[largest(contents)] = npy("<f4", shape, bytes(64))
    path.write_bytes(zipped(contents))
    assert refused(loader, path)


@loaders
@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_small_file_cannot_fill_the_memory(tmp_path, loader, method):
    """80 MB of zeros weigh 80 kB, or far less."""
    path = loader.write(tmp_path)
    contents = members(path.read_bytes())
    size = 8 * 10**7
    contents[largest(contents)] = npy("<f4", (size // 4,), bytes(size))
    path.write_bytes(zipped(contents, method))
    del contents
    assert path.stat().st_size < 2**20
    assert refused(loader, path)


@loaders
def test_a_directory_that_lies_about_a_size_gains_nothing(tmp_path, loader):
    """It says that the member is small, so no more than that is decompressed."""
    path = loader.write(tmp_path)
    contents = members(path.read_bytes())
    size = 3 * 10**7
    contents[largest(contents)] = npy("<f4", (size // 4,), bytes(size))
    content = zipped(contents, zipfile.ZIP_DEFLATED)
    true = len(contents[largest(contents)]).to_bytes(4, "little")
    assert true in content
    path.write_bytes(content.replace(true, (200).to_bytes(4, "little")))
    del contents, content
    assert refused(loader, path)


@loaders
def test_objects_are_never_made(tmp_path, loader):
    path = loader.write(tmp_path)
    contents = members(path.read_bytes())
    contents[largest(contents)] = npy("|O", (1,), b"cos\nsystem\n(S'exit 9'\ntR.")
    path.write_bytes(zipped(contents))
    assert refused(loader, path)


def test_what_compresses_well_is_still_read(tmp_path):
    """A real recording of constant observations: 40 MB in 40 kB."""
    steps = 10**6
    flat = {
        "observations": np.zeros((steps + 1, 4), np.float32),
        "actions": np.zeros(steps, np.int32),
        "lengths": np.array([steps], np.int32),
        "terminated": np.array([False]),
    }
    np.savez_compressed(tmp_path / "zeros.npz", **flat)
    found = archive.read(tmp_path / "zeros.npz", flat, compressed=True)
    np.testing.assert_array_equal(found["observations"], flat["observations"])


def test_the_limit_grows_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FREE_BYTES", 0)
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(1000) % 7)
    assert len(archive.read(tmp_path / "a.npz", ["x"], compressed=True)["x"]) == 1000
    monkeypatch.setattr(archive, "MAX_RATIO", 2)
    with pytest.raises(archive.ArchiveError, match="bytes of memory"):
        archive.read(tmp_path / "a.npz", ["x"], compressed=True)
