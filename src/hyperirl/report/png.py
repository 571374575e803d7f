"""Small images inside a page: hundreds of rectangles would be far larger."""

import base64
import struct
import zlib

import numpy as np

# Dark blue to yellow: brighter all the way, so it survives a black-and-white printer.
_ANCHORS = np.array([[24, 26, 84], [28, 96, 138], [82, 170, 122], [246, 228, 92]])
_PALETTE = np.stack(
    [
        np.interp(np.linspace(0, 3, 256), np.arange(4), channel)
        for channel in _ANCHORS.T.astype(float)
    ],
    axis=1,
).astype(np.uint8)


def image(pixels: np.ndarray, x: int, y: int, width: int, height: int) -> str:
    """An element of an SVG: one color of the scale for each number from 0 to 255."""
    data = base64.b64encode(png(pixels)).decode()
    return (
        f'<image x="{x}" y="{y}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )


def png(pixels: np.ndarray) -> bytes:
    """An image file of palette indices."""
    height, width = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"PLTE", _PALETTE.tobytes())
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )
