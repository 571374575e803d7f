"""TensorBoard event files, read back from their bytes."""

import struct
import types

import pytest

from hyperirl.cli.events import event_writer
from hyperirl.metrics import METRICS

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")


def scalars(folder):
    """The values of an event file: records of a length, a check, data and a check."""
    (path,) = (folder / "tensorboard").iterdir()
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event = event_pb2.Event.FromString(data[at + 12 : at + 12 + size])
        found += [(event.step, value) for value in event.summary.value]
        at += size + 16
    return found


def test_event_files_have_the_titles_of_the_schema(tmp_path, monkeypatch):
    """The writer's own thread has written everything when the process ends."""
    at_exit = []
    exits = types.SimpleNamespace(register=at_exit.append)
    monkeypatch.setattr("tensorboardX.writer.atexit", exits)
    write = event_writer(tmp_path)
    write({"step": 3, "nll_valid": 2.5, "inner_updates": 6, "damping": None})
    (close,) = at_exit
    close()
    found = scalars(tmp_path)
    assert [(step, value.tag, value.simple_value) for step, value in found] == [
        (3, "nll_valid", 2.5),
        (3, "inner_updates", 6.0),
    ]
    for _, value in found:
        metric = METRICS[value.tag]
        assert value.metadata.display_name == metric.title
        assert metric.unit in value.metadata.summary_description
        assert metric.meaning in value.metadata.summary_description
