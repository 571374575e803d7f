"""The film of an episode, inside the page."""

import base64
import dataclasses
import shlex
from html import escape

from hyperirl.report.reading import Run

_MOST = 4 * 2**20  # Bytes of a film that a page takes in.


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A file that `hyperirl play` writes into the folder of a run."""

    name: str
    start: bytes  # What such a file begins with...
    offset: int  # ...after so many bytes.
    element: str

    def draw(self, content: bytes) -> str:
        return self.element.format(base64.b64encode(content).decode())


_KINDS = (
    _Kind(
        "film.gif",
        b"GIF8",
        0,
        '<img class="film" alt="An episode of the policy" '
        'src="data:image/gif;base64,{}">',
    ),
    _Kind(
        "film.mp4",
        b"ftyp",
        4,
        '<video class="film" controls loop muted playsinline '
        'src="data:video/mp4;base64,{}"></video>',
    ),
)


def draw_film(run: Run) -> str:
    """The film in the folder of a run, or how to make one."""
    for kind in _KINDS:
        path = run.path / kind.name
        if not path.is_file():
            continue
        with open(path, "rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            return _note(
                f"{kind.name} is larger than the {_MOST // 2**20} MB that a page takes "
                "in; record a shorter one:",
                f"{_play(run)} --frames 60 --overwrite",
            )
        if content[kind.offset :].startswith(kind.start):
            caption = "An episode of the run's policy, and what the reward pays it."
            return (
                f"<figure>{kind.draw(content)}<figcaption>{caption}</figcaption>"
                "</figure>"
            )
    if not (run.path / "policy.npz").exists():
        return ""
    return _note("No film was recorded; this makes one:", _play(run))


def _play(run: Run) -> str:
    return shlex.join(["hyperirl", "play", str(run.path)])


def _note(words: str, command: str) -> str:
    return f'<p class="note">{escape(words)} <code>{escape(command)}</code></p>'
