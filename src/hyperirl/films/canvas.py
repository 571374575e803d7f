"""A picture to draw on in the units of what is drawn; lines come out smooth."""

import functools
import math
from typing import Any

PAGE, INK, SOFT, RULE = "#ffffff", "#1b1f24", "#57606a", "#d5dae0"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
COLORS = (BLUE, ORANGE, GREEN, "#b5548a", "#b07700", "#7a5bb5")
_FINER = 2  # Drawn so many times larger, then shrunk.

Number = float | int
Point = tuple[Number, Number]


class Canvas:
    """A white picture; `middle` of the world is its center, and y points up."""

    def __init__(self, width: int, height: int, middle: Point, unit: Number):
        """`unit` is how many pixels one unit of the world is."""
        from PIL import Image, ImageDraw

        self.size = (width, height)
        self.image = Image.new("RGB", (_FINER * width, _FINER * height), PAGE)
        self.draw = ImageDraw.Draw(self.image)
        self.middle, self.unit = middle, unit

    def _at(self, point: Point) -> Point:
        x = self.size[0] / 2 + self.unit * (point[0] - self.middle[0])
        y = self.size[1] / 2 - self.unit * (point[1] - self.middle[1])
        return _FINER * x, _FINER * y

    def line(self, points: list[Point], color: str, width: Number = 2) -> None:
        """A line with round ends; its width is in pixels."""
        ends = [self._at(point) for point in points]
        self.draw.line(ends, fill=color, width=round(_FINER * width), joint="curve")
        for x, y in (ends[0], ends[-1]):
            r = _FINER * width / 2
            self.draw.ellipse([x - r, y - r, x + r, y + r], fill=color)

    def circle(self, center: Point, radius: Number, color: str) -> None:
        """A disk; its radius is in pixels."""
        (x, y), r = self._at(center), _FINER * radius
        self.draw.ellipse([x - r, y - r, x + r, y + r], fill=color)

    def box(self, center: Point, width: Number, height: Number, color: str) -> None:
        """A box with round corners; its size is in units of the world."""
        x, y = center
        left, top = self._at((x - width / 2, y + height / 2))
        right, bottom = self._at((x + width / 2, y - height / 2))
        corner = _FINER * 4
        self.draw.rounded_rectangle([left, top, right, bottom], corner, fill=color)

    def arrow(self, start: Point, end: Point, color: str) -> None:
        """A line with a head."""
        self.line([start, end], color, 3)
        angle = math.atan2(end[1] - start[1], end[0] - start[0])
        size = 7 / self.unit
        sides = [
            (end[0] - size * math.cos(angle + d), end[1] - size * math.sin(angle + d))
            for d in (0.6, -0.6)
        ]
        tip = (end[0] + size * math.cos(angle) / 2, end[1] + size * math.sin(angle) / 2)
        self.draw.polygon([self._at(p) for p in (tip, *sides)], fill=color)

    def text(self, at: Point, words: str, color: str = SOFT, size: int = 13) -> None:
        """Words that begin here; their size is in pixels."""
        from PIL import ImageFont

        font = ImageFont.load_default(_FINER * size)
        self.draw.text(self._at(at), words, fill=color, font=font)

    def finish(self) -> Any:
        """The picture in its right size, as an image of Pillow."""
        return self.image.reduce(_FINER)


@functools.cache
def palette() -> Any:
    """All that is drawn and its shades towards the page, for pictures of few colors.

    The same for all frames of a film: what does not move is not stored again.
    """
    from PIL import Image, ImageColor

    page = ImageColor.getrgb(PAGE)
    shades = [*page]
    for color in (INK, SOFT, RULE, *COLORS):
        rgb = ImageColor.getrgb(color)
        for i in range(2, 8):  # Paler ones would be taken for the page.
            mix = [round(a + (b - a) * i / 7) for a, b in zip(page, rgb, strict=True)]
            shades.extend(mix)
    image = Image.new("P", (1, 1))
    image.putpalette(shades)
    return image
