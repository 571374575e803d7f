"""Damage: bytes, archives with right checksums and wrong contents, JSON."""

import copy
import io
import json
import zipfile

import numpy as np

EXTREMES = (b"\0", b"\xff", b"\x7f", b"9" * 12, b"-1", b"(", b"'", b"{", b"|O", b"\n")


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """The bytes with one to three small wounds."""
    for _ in range(random.integers(1, 4)):
        place = int(random.integers(0, len(content) + 1))
        length = int(random.integers(1, 20))
        kind = random.integers(0, 6)
        before, after = content[:place], content[place:]
        if kind == 0:
            content = before + after[length:]
        elif kind == 1:
            content = before + random.bytes(length) + after[length:]
        elif kind == 2:
            content = before + EXTREMES[random.integers(len(EXTREMES))] + after
        elif kind == 3:
            content = before + before[-length:] + after
        elif kind == 4 and after:
            content = before + bytes([after[0] ^ 1 << random.integers(8)]) + after[1:]
        elif kind == 5 and random.random() < 0.2:
            content = before
    return content


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()


def npy(dtype: str, shape: tuple[int, ...], body: bytes = b"") -> bytes:
    """A NumPy file whose header promises whatever you like."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + body


def damaged_inside(content: bytes, random: np.random.Generator) -> bytes:
    """An archive one of whose members is damaged, mostly its header or its JSON."""
    contents = members(content)
    name = list(contents)[random.integers(len(contents))]
    data = contents[name]
    cut = 128 if "metadata" not in name and random.random() < 0.8 else len(data)
    contents[name] = damaged(data[:cut], random) + data[cut:]
    return zipped(contents)


HOSTILE = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**400,
    -(10**30),
    0.5,
    -1e308,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "<script>",
    "x" * 5000,
    [],
    {},
    [[]],
    [None],
    {"mean": 10**400},
    {"": {}},
    [0] * 2000,
)


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def places(value, path=()):
    """All places inside a document, the whole of it included."""
    yield path
    inside = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    for key, item in inside:
        yield from places(item, (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    document = copy.deepcopy(document)
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return document


def damaged_json(document, random: np.random.Generator) -> str:
    """The document with a value replaced by a hostile one, or a part left out."""
    found = list(places(document))
    # As likely to hit the top as one of many numbers deep inside.
    depth = random.integers(0, 1 + max(map(len, found)))
    found = [path for path in found if len(path) == depth]
    path = found[random.integers(len(found))]
    if path and random.random() < 0.2:
        document = replaced(
            document, path[:-1], copy.deepcopy(_at(document, path[:-1]))
        )
        del _at(document, path[:-1])[path[-1]]
        return json.dumps(document)
    value = HOSTILE[random.integers(len(HOSTILE))]
    if random.random() < 0.1:
        value = nested(int(random.integers(20, 900)))
    return json.dumps(replaced(document, path, value))


def _at(document, path):
    for key in path:
        document = document[key]
    return document
