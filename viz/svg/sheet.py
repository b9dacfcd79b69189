"""A page of SVG: shapes and text in px, written as plain attributes, so that slides and papers read them too.

No style sheet, script, filter or pattern: office programs drop those. Pure: numbers and words in, text out.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from model.trace import Flags
from viz.theme import Palette

FONT = "'Source Sans Pro', 'Source Sans 3', 'Source Sans', Helvetica, Arial, sans-serif"
MM = 25.4 / 96  # of one px

# Widths of Helvetica in thousandths of the size: nearly all other sans-serif letters are as wide or narrower.
_WIDTHS = {
    191: "'", 222: "ijl", 260: "|", 278: " !,./:;I[\\]ft", 333: "()-`r", 334: "{}", 355: '"', 389: "*",
    469: "^", 500: "Jckszvxy", 556: "#$0123456789?L_abdeghnopqu", 584: "+<=>~", 611: "FTZ", 667: "&ABEKPSVXY",
    722: "CDHNRUw", 778: "GOQ", 833: "Mm", 889: "%", 944: "W", 1015: "@",
}  # fmt: skip
_WIDTH = {letter: width / 1000 for width, letters in _WIDTHS.items() for letter in letters}
_UNREADABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML cannot hold


def escape(text: str) -> str:
    """Text as XML holds it, between tags and in attributes; what XML cannot hold becomes \ufffd."""
    text = _UNREADABLE.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = text.replace('"', "&quot;")
    # As they are, an XML reader would turn them into spaces, or into one line feed.
    return text.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


@cache
def _letter(letter: str) -> float:
    if letter in _WIDTH:
        return _WIDTH[letter]
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    base = unicodedata.normalize("NFD", letter)[0]
    return _WIDTH.get(base, 0.62)


def width(text: str, size: float, bold: bool = False) -> float:
    """About how wide a line of text is, in px: the reader's font is not known here."""
    return sum(map(_letter, text)) * size * (1.07 if bold else 1.0)


def fit(text: str, size: float, room: float) -> str:
    """The text, or as much of its beginning as fits into `room` px."""
    if width(text, size) <= room:
        return text
    kept, used = [], width("…", size)
    for letter in text:
        used += _letter(letter) * size
        if used > room:
            break
        kept.append(letter)
    return "".join(kept) + "…"


def wrap(text: str, size: float, room: float) -> list[str]:
    """Lines of at most `room` px, broken at spaces; a longer word is cut into pieces."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
            continue
        while width(word, size) > room and len(word) > 1:
            kept = fit(word, size, room)[:-1] or word[0]
            lines.append(kept)
            word = word[len(kept) :]
        lines.append(word)
    return lines


def shades(numbers: NDArray[np.floating], stops: Sequence[tuple[float, str]]) -> NDArray[np.uint32]:
    """The colour of each number on a scale of stops from 0 to 1, as 0xrrggbb."""
    places = [at for at, _colour in stops]
    found = np.zeros(numbers.shape, np.uint32)
    for shift in (16, 8, 0):
        channel = [int(colour[1:], 16) >> shift & 255 for _at, colour in stops]
        found |= np.rint(np.interp(numbers, places, channel)).astype(np.uint32) << shift
    return found


def hex_colour(colour: int) -> str:
    return f"#{colour:06x}"


def px(value: float) -> str:
    """A coordinate, to a hundredth of a px."""
    return f"{value + 0.0:.2f}".rstrip("0").rstrip(".") if abs(value) >= 0.005 else "0"


LEADING = 1.3  # sizes of type from line to line


class Run(NamedTuple):
    """A part of a line that looks alike."""

    text: str
    bold: bool = False
    colour: str = ""


class Sheet:
    """Shapes in the order in which they are drawn; `svg` closes the page."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        self._parts: list[str] = []
        self._defs: list[str] = []

    # --- shapes ---------------------------------------------------------------------------------------------

    def rect(
        self, x: float, y: float, w: float, h: float, fill: str = "none", stroke: str = "", thick: float = 1,
        said: str = "", opacity: float = 1, dash: str = "",
    ) -> None:  # fmt: skip
        """A rectangle; `said` is its title, which a reader of the file sees under the pointer."""
        line = f' stroke="{stroke}" stroke-width="{px(thick)}"' if stroke else ""
        line += f' fill-opacity="{opacity:.3g}"' if opacity < 1 else ""
        line += f' stroke-dasharray="{dash}"' if dash else ""
        shape = f'<rect x="{px(x)}" y="{px(y)}" width="{px(w)}" height="{px(h)}" fill="{fill}"{line}'
        self._parts.append(f"{shape}><title>{escape(said)}</title></rect>" if said else f"{shape}/>")

    def line(
        self, points: Iterable[tuple[float, float]], stroke: str, thick: float = 1, dash: str = "",
        opacity: float = 1, said: str = "",
    ) -> None:  # fmt: skip
        """Straight lines through the points."""
        d = "M" + "L".join(f"{px(x)} {px(y)}" for x, y in points)
        self.path(d, stroke=stroke, thick=thick, dash=dash, opacity=opacity, said=said)

    def path(
        self, d: str, fill: str = "none", stroke: str = "", thick: float = 1, dash: str = "",
        opacity: float = 1, said: str = "",
    ) -> None:  # fmt: skip
        line = f' stroke="{stroke}" stroke-width="{px(thick)}"' if stroke else ""
        line += f' stroke-dasharray="{dash}"' if dash else ""
        # Not of the whole shape: that takes a layer each, and seconds for a thousand lines.
        line += f' fill-opacity="{opacity:.3g}" stroke-opacity="{opacity:.3g}"' if opacity < 1 else ""
        shape = f'<path d="{d}" fill="{fill}"{line}'
        self._parts.append(f"{shape}><title>{escape(said)}</title></path>" if said else f"{shape}/>")

    def circle(self, x: float, y: float, r: float, fill: str, stroke: str = "", said: str = "") -> None:
        line = f' stroke="{stroke}"' if stroke else ""
        shape = f'<circle cx="{px(x)}" cy="{px(y)}" r="{px(r)}" fill="{fill}"{line}'
        self._parts.append(f"{shape}><title>{escape(said)}</title></circle>" if said else f"{shape}/>")

    def text(
        self, text: str, x: float, y: float, size: float = 14, colour: str = "", anchor: str = "start",
        bold: bool = False, angle: float = 0, room: float = float("inf"),
    ) -> None:  # fmt: skip
        """One line, `y` in the middle of its small letters' height; its beginning where it is too long."""
        shown = fit(text, size, room)
        whole = f"<title>{escape(text)}</title>" if shown != text else ""
        # The middle by hand: dominant-baseline is read by browsers alone.
        down = 0.35 * size
        turn = f' transform="rotate({px(angle)} {px(x)} {px(y)})"' if angle else ""
        weight = ' font-weight="700"' if bold else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(
            f'<text x="{px(x)}" y="{px(y + down)}" font-size="{px(size)}" '
            f'fill="{colour or self.palette.text}"{end}{weight}{turn}>{whole}{escape(shown)}</text>'
        )

    def rich(
        self, lines: Sequence[Sequence[Run]], x: float, y: float, size: float, colour: str = "",
        anchor: str = "start", angle: float = 0,
    ) -> None:  # fmt: skip
        """Lines in bold or in colours of their own; `y` in the middle of the first one."""
        turn = f' transform="rotate({px(angle)} {px(x)} {px(y)})"' if angle else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        spans = []
        for index, line in enumerate(lines):
            place = f' x="{px(x)}" y="{px(y + 0.35 * size + index * LEADING * size)}"'
            for run in line:
                look = (' font-weight="700"' if run.bold else "") + (
                    f' fill="{run.colour}"' if run.colour else ""
                )
                spans.append(f"<tspan{place}{look}>{escape(run.text)}</tspan>")
                place = ""
        fill = colour or self.palette.text
        self._parts.append(f'<text font-size="{px(size)}" fill="{fill}"{end}{turn}>{"".join(spans)}</text>')

    @contextmanager
    def clipped(self, x: float, y: float, w: float, h: float) -> Iterator[None]:
        """What is drawn meanwhile ends at the edges of a box."""
        box = f'<rect x="{px(x)}" y="{px(y)}" width="{px(w)}" height="{px(h)}"/>'
        name = f"clip{crc32(box.encode()):08x}"
        self._defs.append(f'<clipPath id="{name}">{box}</clipPath>')
        self._parts.append(f'<g clip-path="url(#{name})">')
        yield
        self._parts.append("</g>")

    # --- what maps are made of ------------------------------------------------------------------------------

    def cells(
        self, colours: NDArray[np.uint32], shown: Flags, x: float, y: float, across: float, down: float
    ) -> None:
        """Cells without a gap, one path a colour, equal neighbours in a row as one: for many cells."""
        paths: dict[int, list[str]] = {}
        for row, (line, open_) in enumerate(zip(colours.tolist(), shown.tolist(), strict=True)):
            start = 0
            for end in range(1, len(line) + 1):
                if end < len(line) and line[end] == line[start] and open_[end] == open_[start]:
                    continue
                if open_[start]:
                    paths.setdefault(line[start], []).append(f"M{start} {row}h{end - start}v1h{start - end}z")
                start = end
        place = f"translate({px(x)} {px(y)}) scale({across:.6g} {down:.6g})"
        self._parts.append(f'<g transform="{place}" shape-rendering="crispEdges">')
        self._parts += [
            f'<path d="{"".join(runs)}" fill="{hex_colour(colour)}"/>' for colour, runs in paths.items()
        ]
        self._parts.append("</g>")

    def hatched(
        self, blocked: Flags, x: float, y: float, across: float, down: float, every: float = 8, gap: float = 0
    ) -> None:
        """The cells that may not be looked at: their ground, and strokes that run on from cell to cell."""
        strokes = []
        for row, line in enumerate(blocked.tolist()):
            for start, end in _runs(line):
                left, right = x + start * across, x + end * across - gap
                top, bottom = y + row * down, y + (row + 1) * down - gap
                self.rect(left, top, right - left, bottom - top, self.palette.blocked)
                first = np.ceil((left + top) / every) * every
                for at in np.arange(first, right + bottom, every).tolist():  # x + y = at
                    a, b = max(left, at - bottom), min(right, at - top)
                    if b > a:
                        strokes.append(f"M{px(a)} {px(at - a)}L{px(b)} {px(at - b)}")
        if strokes:
            self.path("".join(strokes), stroke=self.palette.hatch, thick=1)

    def ramp(self, stops: Sequence[tuple[float, str]], x: float, y: float, w: float, h: float) -> None:
        """A scale of colours, from left to right."""
        ends = "".join(f'<stop offset="{px(at)}" stop-color="{colour}"/>' for at, colour in stops)
        name = f"ramp{crc32(ends.encode()):08x}"  # several files in one document may share it then
        self._defs.append(f'<linearGradient id="{name}">{ends}</linearGradient>')
        self.rect(x, y, w, h, f"url(#{name})")

    def svg(self, wide: float, tall: float, title: str, told: str = "") -> str:
        """The page of `wide` x `tall` px, its size in mm; `title` and `told` for who cannot see it."""
        wide, tall = math.ceil(wide), math.ceil(tall)
        defs = f"<defs>{''.join(self._defs)}</defs>" if self._defs else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * MM:.2f}mm" height="{tall * MM:.2f}mm" '
            f'viewBox="0 0 {px(wide)} {px(tall)}" font-family="{FONT}" role="img" xml:space="preserve">'
            f"<title>{escape(title)}</title><desc>{escape(told)}</desc>{defs}"
            f'<rect width="{px(wide)}" height="{px(tall)}" fill="{self.palette.ground}"/>'
            f"{''.join(self._parts)}</svg>\n"
        )


def _runs(flags: Sequence[bool]) -> Iterable[tuple[int, int]]:
    """Where runs of True begin and end."""
    start = None
    for at, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = at
        elif not flag and start is not None:
            yield start, at
            start = None
