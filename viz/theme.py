"""Colours that mean something, and how token text is made safe for a figure.

Weights have one sequential scale whose lightness rises or falls throughout, so that it survives colour
blindness and a poor projector. Nothing is coloured without a meaning that stands here.
"""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["light", "dark"]


@dataclass(frozen=True)
class Palette:
    """The colours of one theme."""

    ground: str
    text: str
    quiet: str  # secondary text
    blocked: str  # ground of a cell that may not be looked at
    hatch: str  # its hatch
    source: str  # tokens of the source sentence
    target: str  # tokens of the target sentence
    accent: str  # what is chosen
    weights: tuple[tuple[float, str], ...]  # 0 to 1
    signed: tuple[
        tuple[float, str], ...
    ]  # scores and differences, 0.5 in the middle; less is red, more is blue
    overlay: tuple[str, ...]  # heads whose lines are laid over one another; each carries its number too

    def token(self, side: Literal["source", "target"]) -> str:
        return self.source if side == "source" else self.target


PALETTES: dict[Mode, Palette] = {
    "light": Palette(
        ground="#ffffff",
        text="#15181c",
        quiet="#57606a",
        blocked="#f6f6f4",
        hatch="#b4b8bd",
        source="#0b6b50",
        target="#6f3aa8",
        accent="#b93c0a",
        weights=((0.0, "#eaf1fa"), (0.25, "#a9c9e8"), (0.5, "#5a9bd0"), (0.75, "#1f63a8"), (1.0, "#08306b")),
        overlay=("#b93c0a", "#0b5fa5", "#0b6b50", "#6f3aa8", "#8a6100", "#a0246b", "#35618f", "#4b5320"),
        signed=((0.0, "#8c1024"), (0.25, "#e08b78"), (0.5, "#f7f5f2"), (0.75, "#77aad4"), (1.0, "#0b3d7a")),
    ),
    "dark": Palette(
        ground="#14171c",
        text="#e8eaed",
        quiet="#a5adb8",
        blocked="#1b1e23",
        hatch="#5a616b",
        source="#62d2a9",
        target="#c9a3f0",
        accent="#e8702a",
        weights=((0.0, "#1d2938"), (0.25, "#2b5a8c"), (0.5, "#4a90c8"), (0.75, "#93c5ea"), (1.0, "#eaf5ff")),
        overlay=("#ff9154", "#6db7ff", "#62d2a9", "#c9a3f0", "#e3bd45", "#ff8fc4", "#9fc3e8", "#bccb7a"),
        signed=((0.0, "#ffb3a3"), (0.25, "#a8473c"), (0.5, "#1f2227"), (0.75, "#35699c"), (1.0, "#b5dcff")),
    ),
}

FONT = "Source Sans, Source Sans Pro, system-ui, sans-serif"


def escape(token: str) -> str:
    """Token text for a label or a hover: plotly would read `<b>`, `&lt;` and line breaks as markup."""
    return token.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def label_size(count: int, room: int = 340) -> int:
    """Type size in px for `count` labels along `room` px of an axis: as large as fits, never below 11."""
    return max(11, min(18, room // max(count, 1)))
